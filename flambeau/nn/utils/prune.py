"""Pruning: parts of a parameter are masked out, by a hook before each forward."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ..._core.text.inherited_docs import documented_like
from ..._ops.create.like import ones_like, zeros_like
from ..._ops.random.draws import rand, rand_like
from ..._ops.shape.join import cat

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what is pruned: subclasses define `compute_mask` and `PRUNING_TYPE`.

    The parameter `name` becomes `name_orig`, beside which stands a buffer `name_mask`; `name` is their product.

    Example:
        >>> class EveryOther(torch.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask.view(-1)[::2] = 0
        ...         return mask
        >>> layer = torch.nn.Linear(4, 1)
        >>> _ = EveryOther.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[0., 1., 0., 1.]])
    """

    _tensor_name: str
    PRUNING_TYPE: ClassVar[str]

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for a tensor, or for its scores of importance: 0 where `default_mask` is 0 or it is to be pruned."""

    def apply_mask(self, module: Any) -> Any:
        """The product of the mask and the original parameter."""
        assert self._tensor_name is not None, f"Module {module} has to be pruned"
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune the parameter `name` of `module`, which may be pruned already; returns the hook.

        `args` and `kwargs` are the arguments of the method; `importance_scores` stand for the parameter's values.
        """
        earlier = next((item for item in _pruning_hooks(module) if item[1]._tensor_name == name), None)
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier is not None:
            key, hook = earlier
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        if earlier is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default = ones_like(original)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(importance_scores, default_mask=default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if earlier is None:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of a tensor."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned parameter an ordinary one again; what is pruned stays zero."""
        assert self._tensor_name is not None, f"Module {module} has to be pruned before pruning can be removed"
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.data
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter: each prunes what those before it left.

    Args:
        *args: the methods, in the order in which they were applied.

    Example:
        >>> layer = torch.nn.Linear(4, 1)
        >>> for _ in range(2):
        ...     layer = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> int(layer.weight_mask.sum())
        2
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far, with what the last method prunes of the rest."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        part = _left_by(method, mask)
        combined = mask.clone()
        combined[part] = method.compute_mask(t[part], default_mask=mask[part]).to(dtype=mask.dtype)
        return combined


def _left_by(method: Any, mask: Any) -> Any:
    """The index of what the earlier methods left to `method`."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError(
                f"Pruning methods of PRUNING_TYPE 'structured' need to have the attribute dim: {method}"
            )
        dim = method.dim % mask.dim()
        left = mask.sum(dim=[each for each in range(mask.dim()) if each != dim]) != 0
        return (slice(None),) * dim + (left,)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.dim()
    raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


class Identity(BasePruningMethod):
    """Prunes nothing: parameter and mask are there.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> method = torch.nn.utils.prune.Identity.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far."""
        return default_mask

    # Here and below: as in PyTorch, each method has arguments of its own.
    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]  # its own
        """Prune nothing of the parameter `name`."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: a number of them, or a fraction.

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.

    Example:
        >>> layer = torch.nn.Linear(2, 4)
        >>> method = torch.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=3)
        >>> int(layer.weight_mask.sum())
        5
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without the elements that draw the largest numbers."""
        return _without_elements(self.amount, t, default_mask, lambda: rand_like(t), largest=True)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float) -> Any:  # type: ignore[override]  # its own
        """Prune elements of the parameter `name` at random."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of smallest absolute value: a number of them, or a fraction.

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.

    Example:
        >>> layer = torch.nn.Linear(4, 1)
        >>> method = torch.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=0.5)
        >>> int(layer.weight_mask.sum())
        2
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without the elements of smallest absolute value."""
        return _without_elements(self.amount, t, default_mask, lambda: t.abs(), largest=False)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, importance_scores: Any = None) -> Any:  # type: ignore[override]  # its own
        """Prune the smallest elements of the parameter `name`, or those with the smallest scores."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _without_elements(amount: float, t: Any, default_mask: Any, scores: Any, largest: bool) -> Any:
    """`default_mask` without the elements that have the largest, or the smallest, scores."""
    number = _compute_nparams_toprune(amount, t.nelement())
    _validate_pruning_amount(number, t.nelement())
    mask = default_mask.clone().contiguous()
    if number != 0:
        chosen = scores().reshape(-1).topk(number, largest=largest).indices
        mask.view(-1)[chosen] = 0
    return mask


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along a dimension at random.

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.
        dim (int): the dimension whose slices are pruned. Default: `-1`.

    Example:
        >>> layer = torch.nn.Linear(2, 4)
        >>> method = torch.nn.utils.prune.RandomStructured.apply(layer, "weight", amount=2, dim=0)
        >>> int(layer.weight_mask.sum())
        4
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without the slices that draw the smallest numbers."""
        number, count = _slices_to_prune(self.amount, t, self.dim)
        if number == 0:
            return default_mask
        draws = rand(count)
        return _with_slices(draws > draws.kthvalue(number).values, self.dim, default_mask)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, dim: int = -1) -> Any:  # type: ignore[override]  # its own
        """Prune slices of the parameter `name` at random."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension that have the smallest norms.

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.
        n: the order of the norm, as `torch.linalg.vector_norm` takes it.
        dim (int): the dimension whose slices are pruned. Default: `-1`.

    Example:
        >>> layer = torch.nn.Linear(2, 4)
        >>> method = torch.nn.utils.prune.LnStructured.apply(layer, "weight", amount=0.5, n=2, dim=0)
        >>> int(layer.weight_mask.sum())
        4
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without the slices of smallest norm."""
        number, count = _slices_to_prune(self.amount, t, self.dim)
        if number == 0:
            return default_mask
        kept = _compute_norm(t, self.n, self.dim).topk(count - number, largest=True).indices
        return _with_slices(kept, self.dim, default_mask)

    @classmethod
    def apply(  # type: ignore[override]  # its own
        cls, module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        """Prune the slices of the parameter `name` that have the smallest norms."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


def _slices_to_prune(amount: float, t: Any, dim: int) -> tuple[int, int]:
    """How many slices along `dim` to prune, and how many there are."""
    _validate_structured_pruning(t)
    _validate_pruning_dim(t, dim)
    count = t.shape[dim]
    number = _compute_nparams_toprune(amount, count)
    _validate_pruning_amount(number, count)
    return number, count


def _with_slices(kept: Any, dim: int, default_mask: Any) -> Any:
    """`default_mask` on the slices that are kept, zero elsewhere."""
    mask = zeros_like(default_mask)
    mask[(slice(None),) * (dim % mask.dim()) + (kept,)] = 1
    return mask.mul_(default_mask.to(dtype=mask.dtype))


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that the caller gives.

    Args:
        mask: zeros where the parameter is pruned, ones elsewhere.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> method = torch.nn.utils.prune.CustomFromMask.apply(layer, "bias", torch.tensor([0.0]))
        >>> layer.bias.item() == 0
        True
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The product of both masks."""
        assert default_mask.shape == self.mask.shape, (
            f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
        )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]  # its own
        """Prune the parameter `name` by a mask."""
        return super().apply(module, name, mask=mask)


# ----- functions ----------------------------------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """Give the parameter `name` a mask of ones.

    Args:
        module: the module.
        name (str): the name of the parameter.

    Returns:
        Module: `module` itself.

    Example:
        >>> torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "weight").weight_mask
        tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


@documented_like(identity)
def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prune elements of the parameter `name` at random: `amount` is their number, or their fraction as a float.

    >>> layer = flambeau.nn.utils.prune.random_unstructured(flambeau.nn.Linear(2, 3), "weight", amount=2)
    >>> int(layer.weight_mask.sum())
    4

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


@documented_like(identity)
def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Any = None) -> Any:
    """Prune the elements of the parameter `name` of smallest absolute value.

    Args:
        amount (float): how much to prune: a whole number of elements or slices, or a fraction between 0 and 1.
        importance_scores: a tensor of the parameter's shape by which to choose, in place of the parameter.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> _ = layer.weight.data.copy_(torch.tensor([[0.1, -3.0, 2.0]]))
        >>> torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1).weight_mask
        tensor([[0., 1., 1.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


@documented_like(l1_unstructured)
def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prune slices of the parameter `name` along `dim` at random.

    Args:
        dim (int): the dimension whose slices are pruned.

    Example:
        >>> torch.nn.utils.prune.random_structured(torch.nn.Linear(2, 4), "weight", amount=1, dim=0).weight_mask.sum()
        tensor(6.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


@documented_like(l1_unstructured)
def ln_structured(module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the slices of the parameter `name` along `dim` whose norms of order `n` are smallest.

    Args:
        n: the order of the norm, as `torch.linalg.vector_norm` takes it.
        dim (int): the dimension whose slices are pruned.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 1.0], [2.0, 2.0]]))
        >>> torch.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0).weight_mask
        tensor([[0., 0.],
                [1., 1.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters, pairs of a module and a name, as if they were one tensor.

    `pruning_method` is a class of unstructured methods, `kwargs` its arguments; `importance_scores` may have scores
    for some of the pairs.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: the class that chooses what to prune, such as `L1Unstructured`.
        importance_scores: a tensor of the parameter's shape by which to choose, in place of the parameter.
        **kwargs: arguments of that class, such as `amount`.

    Example:
        >>> first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        >>> pairs = [(first, "weight"), (second, "weight")]
        >>> torch.nn.utils.prune.global_unstructured(pairs, torch.nn.utils.prune.L1Unstructured, amount=4)
        >>> sum(int((layer.weight == 0).sum()) for layer in (first, second))
        4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name) for module, name in parameters]
    tensors = [getattr(module, name) for module, name in pairs]
    together = cat([scores.get(pair, each).reshape(-1) for pair, each in zip(pairs, tensors, strict=True)])
    masks = [
        getattr(module, name + "_mask", ones_like(each)).reshape(-1)
        for (module, name), each in zip(pairs, tensors, strict=True)
    ]
    container = PruningContainer()
    container._tensor_name = "temp"  # the methods of one container are for one tensor
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    final = container.compute_mask(together, cat(masks))
    parts = final.split([each.numel() for each in tensors])
    for (module, name), each, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(each))


@documented_like(identity)
def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune the parameter `name` by a mask of zeros and ones.

    Args:
        mask: zeros where the parameter is pruned, ones elsewhere.

    Example:
        >>> layer = torch.nn.utils.prune.custom_from_mask(torch.nn.Linear(2, 1), "weight", torch.tensor([[0, 1]]))
        >>> layer.weight[0, 0].item() == 0
        True
    """
    CustomFromMask.apply(module, name, mask)
    return module


@documented_like(identity)
def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one again; what is pruned stays zero.

    Example:
        >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 1), "weight", amount=2)
        >>> layer = torch.nn.utils.prune.remove(layer, "weight")
        >>> [name for name, _ in layer.named_parameters()], int((layer.weight == 0).sum())
        (['bias', 'weight'], 2)
    """
    for key, hook in _pruning_hooks(module):
        if hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of `module`, or of a module below it, is pruned.

    Args:
        module: the module.

    Returns:
        bool: whether one is.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> torch.nn.utils.prune.is_pruned(layer)
        False
        >>> torch.nn.utils.prune.is_pruned(torch.nn.utils.prune.identity(layer, "bias"))
        True
    """
    return any(True for each in module.modules() for _ in _pruning_hooks(each))


def _pruning_hooks(module: Any) -> list[tuple[int, Any]]:
    return [(key, hook) for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod)]


# ----- checks -------------------------------------------------------------------------------------------------------


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Any) -> None:
    if len(t.shape) <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {len(t.shape)} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Any, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Any, n: Any, dim: int) -> Any:
    """The norm of each slice along `dim`."""
    return t.norm(p=n, dim=[each for each in range(t.dim()) if each != dim % t.dim()])
