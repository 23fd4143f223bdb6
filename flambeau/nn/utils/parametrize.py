"""Parameters that are functions of others: `module.weight` is computed whenever it is read."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ..._core.tensor import Tensor
from ..._torch import __future__ as choices
from ...autograd.grad_mode import no_grad
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

M = TypeVar("M", bound=Module)

_cache_enabled = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """A context in which a parametrized tensor is computed once, however often it is read.

    Returns:
        a context manager.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> with torch.nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module: Module, name: str, X: Any) -> None:
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other, and what they are applied to.

    That is `original`, or `original0`, `original1`, ... if the `right_inverse` of the first gives several tensors. It
    begins as what the parametrizations map to the tensor's present value, if they can say.

    Args:
        modules (sequence of Modules): the parametrizations, in the order in which they are applied.
        original: the tensor that they are applied to, or what their `right_inverse` makes of it.
        unsafe (bool): whether shapes and dtypes may change. Default: `False`.

    Returns:
        the parametrized tensor.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))
        >>> type(layer.parametrizations.weight).__name__, len(layer.parametrizations.weight)
        ('ParametrizationList', 1)
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            inverse = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        inverse = module.right_inverse(inverse)
        if not isinstance(inverse, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(inverse).__name__}"
            )
        self.is_tensor = isinstance(inverse, Tensor)
        self.ntensors = 1 if isinstance(inverse, Tensor) else len(inverse)
        if isinstance(inverse, Tensor):
            self._keep_one(original, inverse)
        else:
            self._keep_several(original, inverse)
        if not unsafe:
            _check_result(
                self(), "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is "
                "enabled.\nunparametrized {}: {}\nparametrized {}: {}", dtype, shape,
            )  # fmt: skip

    def _keep_one(self, original: Any, inverse: Any) -> None:
        for what in ("dtype", "device"):
            before, after = getattr(original, what), getattr(inverse, what)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: {before}"
                    f"\nright_inverse(original).{what}: {after}"
                )
        # The same object with new content: optimizers that know it go on updating it.
        _set(original, inverse)
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original: Any, inverse: Sequence[Any]) -> None:
        for number, each in enumerate(inverse):
            if not isinstance(each, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{number} of the sequence with type {type(each).__name__}."
                )
            kept = Parameter(each, original.requires_grad) if isinstance(original, Parameter) else each
            _register_parameter_or_buffer(self, f"original{number}", kept.requires_grad_(original.requires_grad))

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor becomes `value`, as an assignment to it does."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                values: Sequence[Any] = [value]
            elif not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            else:
                values = value
            if len(values) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(values)}."
                )
            for number, (own, new) in enumerate(zip(self._originals(), values, strict=True)):
                name = "original" if self.is_tensor else f"original{number}"
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got element {number} of type "
                        f"{type(new).__name__}."
                    )
                if own.dtype is not new.dtype:
                    which = "The tensor" if self.is_tensor else f"Tensor {number}"
                    raise ValueError(
                        f"{which} returned by `right_inverse` has dtype {new.dtype} while `{name}` has dtype "
                        f"{own.dtype}"
                    )
                _set(own, new)

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _set(target: Any, value: Any) -> None:
    with no_grad():
        target.set_(value.detach())


def _check_result(value: Any, complaint: str, dtype: Any, shape: Any) -> None:
    """Refuse a parametrized tensor that is of another dtype or shape than the one that it stands for."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, before, after in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if before != after:
            raise ValueError(complaint.format(what, what, before, what, after))


def _refuse_state(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): the class of the module was "
        "made while the program ran, and a pickle could not name it."
    )


def _deepcopied(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for cls in type(self).__mro__:  # what a class keeps in slots is in no dictionary
        slots = getattr(cls, "__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(self, slot):
                setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _give_own_class(module: Module) -> None:
    """Make `module` the only instance of a subclass of its class, which can then have properties of its own."""
    cls = type(module)
    body: dict[str, Any] = {"__getstate__": _refuse_state, "__module__": __name__}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = _deepcopied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _add_property(module: Module, name: str) -> None:
    def read(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _cache_enabled:
            return parametrization()
        key = id(self), name
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> M:
    """Make the parameter or buffer `tensor_name` of `module` the result of `parametrization`.

    Several on one tensor are applied in the order of their registration. A parametrization that has a method
    `right_inverse` can be assigned to, and begins with the value that the tensor has. With `unsafe`, dtype and shape
    may change and nothing is tried out beforehand.

    >>> class Symmetric(flambeau.nn.Module):
    ...     def forward(self, matrix):
    ...         return matrix.triu() + matrix.triu(1).T
    >>> layer = flambeau.nn.Linear(3, 3)
    >>> _ = flambeau.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True

    Args:
        module (M): the module.
        tensor_name (str): the name of the parameter or buffer.
        parametrization (Module): a module that computes the tensor from the original.
        unsafe (bool): whether the shape and dtype may change, which is not checked then. Default: `False`.

    Returns:
        Module: `module` itself.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _try_out(module, tensor_name, parametrization)
        several = module.parametrizations[tensor_name]
        several.append(parametrization)
        several.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _try_out(module: Module, name: str, parametrization: Module) -> None:
    """Refuse a further parametrization that changes dtype or shape, forwards or backwards."""
    present = getattr(module, name)
    result = parametrization(present)
    start = "Registering a parametrization may not change the {} of the tensor, unless the `unsafe` flag is enabled."
    _check_result(
        result, f"{start}\nmodule.{name}.{{}}: {{}}\nparametrization(module.{name}).{{}}: {{}}", present.dtype,
        present.shape,
    )  # fmt: skip
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        before, after = getattr(present, what), getattr(inverse, what)
        if before != after:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {before}\nreturned {what}: {after}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module` has parametrizations, or one on the tensor `tensor_name`.

    Args:
        module (Module): the module.
        tensor_name (str, optional): the name of one parameter or buffer; None asks about all.

    Returns:
        bool: whether there is one.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))
        >>> torch.nn.utils.parametrize.is_parametrized(layer, "weight")
        True
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Make `tensor_name` an ordinary parameter or buffer again.

    It keeps its present value, or with `leave_parametrized=False` gets that of the original.

    Args:
        module (M): the module.
        tensor_name (str): the name of the parameter or buffer.
        leave_parametrized (bool): whether the tensor keeps its computed value; otherwise it becomes the original.
            Default: `True`.

    Returns:
        Module: `module` itself.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))
        >>> layer = torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> torch.nn.utils.parametrize.is_parametrized(layer)
        False
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that `module` has without its parametrizations.

    Args:
        module (Module): the module.

    Returns:
        type: the class.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> type(layer).__name__, torch.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: M, tensor_name: str | None = None) -> M:
    """Give `to_module` the parametrizations of `from_module`, or those of one tensor, and their originals.

    Args:
        from_module (Module): the module that has the parametrizations.
        to_module (M): the module that gets them.
        tensor_name (str, optional): the name of one parameter or buffer; None means all.

    Returns:
        Module: `to_module` itself.

    Example:
        >>> source = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> target = torch.nn.utils.parametrize.transfer_parametrizations_and_params(source, torch.nn.Linear(2, 2))
        >>> torch.equal(source.weight, target.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    source = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if target.is_tensor else [f"original{i}" for i in range(target.ntensors)]:
            setattr(target, key, getattr(source[name], key))
    return to_module


def _maybe_set(dest: Tensor, src: Tensor) -> None:
    """Give a tensor the content of another: by exchange of the two where modules are told to, else by `data`."""
    if choices.get_swap_module_params_on_conversion():
        from ...utils import swap_tensors

        swap_tensors(dest, src if isinstance(src, Parameter) else Parameter(src, requires_grad=dest.requires_grad))
        return
    dest.data = src
