"""Forward-mode differentiation: dual tensors carry a tangent through the program.

No op has a forward rule of its own. A view maps its tangent as it maps its input; an elementwise op's derivative is
diagonal, so its backward formula serves both directions; and for every other op the product of the Jacobian with a
tangent comes from differentiating its backward pass, which is linear in the gradient that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core.modes import THREAD
from .._core.process.interrupts import uninterrupted as _uninterrupted
from .._core.storage import owner_of
from .._core.tensor import Tensor
from .._dispatch.elementwise import Elementwise
from .grad_mode import _ContextDecorator


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's two parts; the tangent of an ordinary tensor is None.

    Args:
        primal (Tensor): the value.
        tangent (Tensor, optional): the derivative; None for an ordinary tensor.

    Example:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     x = torch.autograd.forward_ad.make_dual(torch.tensor(1.0), torch.tensor(2.0))
        ...     value, tangent = torch.autograd.forward_ad.unpack_dual(x)
        >>> value, tangent
        (tensor(1.), tensor(2.))
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a forward-mode level; tangents live until it ends.

    Returns:
        int: the level's number.

    Example:
        >>> level = torch.autograd.forward_ad.enter_dual_level()
        >>> torch.autograd.forward_ad.exit_dual_level(level=level)
    """
    modes = THREAD.modes
    if modes.forward_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    modes.forward_level += 1
    modes.refresh()
    _LIVE.append([])
    return modes.forward_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the forward-mode level and drop its tangents.

    Args:
        level (int, optional): the level; None means the innermost.

    Example:
        >>> level = torch.autograd.forward_ad.enter_dual_level()
        >>> torch.autograd.forward_ad.exit_dual_level()
    """
    modes = THREAD.modes
    if level is None:
        level = modes.forward_level
    if level < 0:
        raise RuntimeError("Dual level must be a positive number: there is no level to exit")
    if level != modes.forward_level or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    modes.forward_level -= 1
    modes.refresh()
    for reference in _LIVE.pop():
        tensor = reference()
        if tensor is not None and tensor._extra is not None:
            tensor._extra.tangents = None


_LIVE: list[list[Any]] = []


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`.

    Args:
        tensor (Tensor): the value.
        tangent (Tensor): its derivative in the direction in question, of the same shape.
        level (int, optional): the level; None means the innermost.

    Returns:
        Tensor: the dual tensor.

    Example:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     x = torch.autograd.forward_ad.make_dual(torch.tensor(0.0), torch.tensor(2.0))
        ...     torch.autograd.forward_ad.unpack_dual(x.sin())
        UnpackedDualTensor(primal=tensor(0.), tangent=tensor(2.))
    """
    level = THREAD.modes.forward_level if level is None else level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if not (each.dtype.is_floating_point or each.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {each.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tensor._is_wrapper or tangent._is_wrapper:
        made: Tensor = _innermost(tensor, tangent)._on_values(make_dual, tensor, tangent)
        return made
    if tangent_of(tensor) is not None:
        raise RuntimeError("Expected a tensor that has no tangent yet, but it is a dual tensor already")
    with _no_level():
        dual = tensor.view_as(tensor)
    _set_tangent(dual, tangent)
    return dual


def _innermost(tensor: Any, tangent: Any) -> Any:
    """A tensor or its tangent: whichever the innermost `vmap` has wrapped."""
    if not tensor._is_wrapper:
        return tangent
    return tensor if not tangent._is_wrapper or tensor.level.number >= tangent.level.number else tangent


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor.

    Args:
        tensor (Tensor): a dual tensor, or an ordinary one.
        level (int, optional): the level; None means the innermost.

    Returns:
        UnpackedDualTensor: its value and its tangent.

    Example:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     torch.autograd.forward_ad.unpack_dual(torch.tensor(1.0)).tangent is None
        True
    """
    if level is None:
        level = THREAD.modes.forward_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if tensor._is_wrapper:
        return UnpackedDualTensor(*tensor._on_values(lambda value: tuple(unpack_dual(value)), tensor))
    tangent = tangent_of(tensor)
    with _no_level():
        primal = tensor.view_as(tensor)
    return UnpackedDualTensor(primal, tangent)


class dual_level(_ContextDecorator):
    """A context in which dual tensors can be made.

    Example:
        >>> import flambeau.autograd.forward_ad as forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     forward_ad.unpack_dual(x**2).tangent
        tensor(6.)
    """

    def __enter__(self) -> int:  # type: ignore[override]  # other contexts give nothing
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def tangent_of(tensor: Any) -> Tensor | None:
    """The tangent that `tensor` carries, if any."""
    if not isinstance(tensor, Tensor) or tensor._extra is None or not tensor._extra.tangents:
        return None
    return tensor._extra.tangents.get(THREAD.modes.forward_level)


def _set_tangent(tensor: Tensor, tangent: Tensor) -> None:
    import weakref

    tensor._get_extra().tangents = {THREAD.modes.forward_level: tangent}
    _LIVE[-1].append(weakref.ref(tensor))


def adopt_tangent(target: Tensor, result: Tensor | None) -> None:
    """After an in-place change: `target`, and the base that it is a view of, take the tangent of `result`.

    Where that has none, as random numbers and results of comparisons, the tangent of what was overwritten is zero.
    """
    base = target if target._view is None else target._view.base
    whole = tangent_of(base)
    tangent = tangent_of(result)
    if tangent is None and whole is None:
        return
    with _no_level():
        if tangent is None:
            tangent = target.new_zeros(target.shape)
        tangent = tangent.to(target.dtype).expand(target.shape)
    own = tangent_of(target)
    seen = own is not None and (whole is None or owner_of(own._array) is owner_of(whole._array))
    if own is not None and seen and not own.requires_grad and not tangent.requires_grad and 0 not in own.stride():
        with _no_level():
            own.copy_(tangent)  # the tangents of other views of the same memory see it
        return
    if target._view is None:
        _set_tangent(target, tangent)
        return
    from .._ops.shape.complex_view import window_of
    from .._ops.shape.conjugate import as_kind

    with _no_level():
        if whole is None:
            whole = base.new_zeros(base.shape)
        else:
            whole = whole.clone()
        whole = as_kind(whole, base._kind)
        scale = base._kind.dtype.itemsize / target._kind.dtype.itemsize
        offset = target.storage_offset() - int(base.storage_offset() * scale)
        window = window_of(whole, target._kind, (tuple(target.shape), target.stride(), offset))
        window.copy_(tangent)
    _set_tangent(base, whole)
    _set_tangent(target, window)


class _no_level:
    """A context in which tangents are ignored: primals and tangents are computed by ordinary ops."""

    @_uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._level = modes.forward_level
        modes.forward_level = -1
        modes.refresh()

    @_uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.forward_level = self._level
        modes.refresh()


def propagate(op: Any, args: Sequence[Any], outputs: list[Tensor], level: int) -> None:
    """Give the outputs of an op the tangents that follow from those of its inputs."""
    tangents = {id(each): tangent for each in _tensors(args) if (tangent := tangent_of(each)) is not None}
    if not tangents or op.node_class is None or not any(each._kind.differentiable for each in outputs):
        return  # comparisons have formulas for the case that a float is overwritten by them; their results have none
    with _no_level():
        found: list[Any]
        if op.tangent is not None:
            found = [op.tangent(tangents[id(args[0])], outputs[0], *args)]
        elif getattr(op, "is_view", False) or getattr(op, "is_linear", False):
            moved = op(tangents[id(args[0])], *args[1:])
            found = list(moved) if isinstance(moved, tuple) else [moved]
        elif isinstance(op, Elementwise) and not any(each.dtype.is_complex for each in (*_tensors(args), *outputs)):
            found = [_diagonal(op, args, outputs[0], tangents)]
        else:
            found = _by_transposition(op, args, tangents)
    for output, tangent in zip(outputs, found, strict=True):
        if tangent is not None:
            _set_tangent(output, tangent)


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for each in args:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += [item for item in each if isinstance(item, Tensor)]
    return found


def _diagonal(op: Elementwise, args: Sequence[Any], output: Tensor, tangents: dict[int, Tensor]) -> Any:
    assert op.node_class is not None
    total: Any = None
    for position, entry in zip(op.grad_inputs, op.node_class.formulas, strict=True):
        tangent = tangents.get(id(args[position]))
        if tangent is None or entry is None:
            continue
        formula, names = entry
        part = formula(tangent, *[output if name == "result" else args[op.parameters.index(name)] for name in names])
        total = part if total is None else total + part
    if total is None:
        return None
    return total.to(output.dtype).expand(output.shape)


def _by_transposition(op: Any, args: Sequence[Any], tangents: dict[int, Tensor]) -> list[Any]:
    from . import grad
    from .grad_mode import enable_grad

    with enable_grad():
        sources: list[Tensor] = []
        directions: list[Tensor] = []

        def watched(value: Any) -> Any:
            if isinstance(value, (list, tuple)) and any(id(item) in tangents for item in value):
                return type(value)(watched(item) for item in value)
            tangent = tangents.get(id(value))
            if tangent is None:
                return value
            source = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
            sources.append(source)
            directions.append(tangent)
            return source

        again = op(*[watched(each) for each in args])
        results = list(again) if isinstance(again, tuple) else [again]
        found = [_jacobian_times(result, sources, directions, grad) for result in results]
    if any(each.requires_grad for each in (*_tensors(args), *directions)):
        return found
    return [each if each is None else each.detach() for each in found]  # the sources were made here


def _jacobian_times(result: Tensor, sources: list[Tensor], directions: list[Tensor], grad: Any) -> Any:
    if not result.requires_grad:
        return None
    probe = result.new_zeros(result.shape).requires_grad_()
    pulled = grad(result, sources, probe, create_graph=True, allow_unused=True)
    total: Any = None
    for gradient, direction in zip(pulled, directions, strict=True):
        if gradient is None or not gradient.requires_grad:
            continue
        product = gradient.conj() * direction if gradient.dtype.is_complex else gradient * direction
        part = (product.real if product.dtype.is_complex else product).sum()
        total = part if total is None else total + part
    if total is None:
        return result.new_zeros(result.shape)
    return grad(total, probe, create_graph=THREAD.modes.grad, allow_unused=True, materialize_grads=True)[0]


def propagate_custom(cls: Any, node: Any, args: Sequence[Any], outputs: list[Any]) -> None:
    """The tangents of a custom function's outputs, by its own `jvp`."""
    given = [tangent_of(each) if isinstance(each, Tensor) else None for each in args]
    if all(each is None for each in given):
        return
    with _no_level():
        if node.materialize_grads:
            given = [
                each.new_zeros(each.shape) if tangent is None and isinstance(each, Tensor) else tangent
                for each, tangent in zip(args, given, strict=True)
            ]
        node._in_jvp = True
        try:
            results = cls.jvp(node, *given)
        finally:
            node._in_jvp = False
    for output, tangent in zip(outputs, results if isinstance(results, tuple) else (results,), strict=True):
        if isinstance(output, Tensor) and tangent is not None:
            _set_tangent(output, tangent)


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # PyTorch keeps it here as a number
        return THREAD.modes.forward_level
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
