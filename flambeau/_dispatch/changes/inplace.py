"""In-place operations: what may change, and how the result of an op becomes the content of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backends.arrays import duplicate
from ..._core.dtype import LEGACY_NAMES, can_cast, dtype
from ..._core.geometry.layout import element_strides, is_dense
from ..._core.modes import THREAD
from ..._core.node import Node
from ..._core.slots import SLOTS
from ..._core.storage import address_of, are_apart
from ..._core.tensor import DEFAULT, Tensor
from ..._core.text.errors import INFERENCE_INPLACE, LEAF_INPLACE, LEAF_VIEW_INPLACE
from .direct_updates import write_elementwise
from .history import end_change, forbidden_view
from .storing import store_elements

if TYPE_CHECKING:
    from ..._core.node import Edge


def run_inplace(
    op: Callable[..., Any], name: str, target: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """Compute `op(target, ...)` and make it the new content of `target`."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{name}_(): argument 'input' (position 1) must be Tensor, not {type(target).__name__}")
    check_writable(target, any(_needs_grad(each) for each in (*args, *kwargs.values())))
    for each in args:
        if isinstance(each, Tensor) and each is not target:
            check_partial_overlap(target, each)
    if not kwargs and write_elementwise(op, target, args):
        return target
    result = op(before_change(target, args, kwargs), *args, **kwargs)
    adopt(target, result, name)
    return target


def before_change(target: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """The tensor that an out-of-place op reads in place of `target`, which is about to change.

    Where the op will be recorded it reads a copy, so that what the derivative saves stays as it was.
    """
    if target._is_wrapper:
        return target._before_change()
    modes = THREAD.modes
    edge = target._edge() if modes.grad else None
    recorded = modes.grad and (edge is not None or any(_needs_grad(each) for each in (*args, *kwargs.values())))
    array = _content(target) if recorded else target._array
    before = version_before(target, array, edge)
    if target._extra is not None and target._extra.tangents:
        before._get_extra().tangents = target._extra.tangents
    return before


def _content(target: Tensor) -> Any:
    """A copy of what `target` holds; to interpreters it is an op like any other."""
    return _cloned(target)._array if THREAD.modes.interpreters else duplicate(target._array)


def _cloned(target: Tensor) -> Tensor:
    """A copy outside the graph."""
    modes = THREAD.modes
    grad, modes.grad = modes.grad, False
    try:
        return target.clone()
    finally:
        modes.grad = grad


def version_before(target: Tensor, array: Any, edge: Edge) -> Tensor:
    """A stand-in over `array` for `target` as it is before a change: `edge` is its place in the graph."""
    if hasattr(type(target), "__torch_dispatch__"):  # its class alone knows what is in it
        before = _cloned(target)
    else:
        before = Tensor._from_parts((array, target._kind, [0, None]))
    if edge is not None:
        before._requires_grad = True
        before._grad_fn = edge[0] if isinstance(edge[0], Node) else None
        before._output_nr = edge[1]
    return before


def _needs_grad(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    return isinstance(value, (list, tuple)) and any(_needs_grad(each) for each in value)


_FILLS_EXPANDED = ("masked_fill",)
"""Ops that give all elements at one memory location the same value: the order in which they are stored is open."""


_LOGICAL = ("logical_and", "logical_not", "logical_or", "logical_xor")
"""Ops to which neither the gradient nor the tangent of what they overwrite matters: both stay as they were."""


def adopt(target: Tensor, result: Tensor, name: str) -> None:
    """Give `target` the content and the history of `result`."""
    check_castable(result._kind.dtype, target._kind.dtype, name)
    if result._array.shape != target._array.shape:
        raise RuntimeError(
            f"output with shape {list(target._array.shape)} doesn't match the broadcast shape "
            f"{list(result._array.shape)}: {name}_ cannot change the shape of the tensor that it writes to"
        )
    if name not in _FILLS_EXPANDED:
        check_no_overlap(target)
    store_elements(target, result)
    if THREAD.modes.forward_level >= 0 and name not in _LOGICAL:  # no tangent, as that of a comparison, is zero
        SLOTS.adopt_tangent(target, result)
    end_change(target, result._grad_fn, result._output_nr, result)


def check_castable(result: dtype, target: dtype, name: str) -> None:
    """Refuse to store results of one dtype in a tensor of a lesser one."""
    if not can_cast(result, target):
        raise RuntimeError(
            f"result type {LEGACY_NAMES[result]} can't be cast to the desired output type {LEGACY_NAMES[target]}: "
            f"{name} would have to store {result} in a {target} tensor. Let it make a new tensor, or convert one of "
            "the operands"
        )


def check_no_overlap(target: Tensor) -> None:
    """Refuse to write to a tensor in which several elements are one memory location, such as an expanded one."""
    array = target._array
    if (
        array.size
        and 0 in array.strides
        and any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation. (shape {list(array.shape)}, "
            f"strides {list(target.stride())})"
        )


def check_partial_overlap(target: Tensor, other: Tensor) -> None:
    """Refuse to write to memory that another operand sees shifted: the result would depend on the order of the loop."""
    check_separate(target, other, but_same=True)


def check_separate(target: Tensor, other: Tensor, but_same: bool = False) -> None:
    """`check_apart` of two tensors; where signs are still to be taken from one of them, ops work on copies."""
    if target._kind.plain is target._kind and other._kind.plain is other._kind:
        check_apart(target._array, other._array, but_same)


def _steps(array: Any) -> list[tuple[int, int]]:
    """How elements follow each other, whatever the dimensions of size 1 say."""
    return [pair for pair in zip(array.shape, array.strides, strict=True) if pair[0] != 1]


def _are_same(one: Any, other: Any) -> bool:
    """Whether two arrays are the same elements in the same order."""
    alike = one.strides == other.strides and one.shape == other.shape
    return (alike or _steps(one) == _steps(other)) and address_of(one) == address_of(other)


def check_apart(written: Any, read: Any, but_same: bool = False) -> None:
    """Refuse to read memory that is being written; `but_same`: unless both are the same elements in the same order."""
    if are_apart(written, read) or (but_same and _are_same(written, read)) or not np.may_share_memory(written, read):
        return
    # With gaps in one of them the extents tell nothing: PyTorch lets such tensors pass.
    if all(is_dense(each.shape, element_strides(each)) for each in (written, read)):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def check_writable(target: Tensor, brings_grad: bool = False) -> None:
    """Refuse in-place changes that autograd could not follow. `brings_grad`: another operand requires gradients."""
    view = target._view
    if view is None and not target._requires_grad and target._counter is not None:
        return
    modes = THREAD.modes
    if target._counter is None:
        if not modes.inference and (target._extra is None or target._extra.own_version is None):
            raise RuntimeError(INFERENCE_INPLACE)
        return
    if not modes.grad:
        return
    if view is None:
        if target._grad_fn is None:
            raise RuntimeError(LEAF_INPLACE + _leaf_advice(target))
        return
    if not target.requires_grad and not brings_grad:
        return
    if view.creation != DEFAULT:
        raise RuntimeError(forbidden_view(target, view))
    if target.requires_grad and (view.base.grad_fn is None or target.grad_fn is None):
        raise RuntimeError(LEAF_VIEW_INPLACE + _leaf_advice(target))


def _leaf_advice(target: Tensor) -> str:
    return (
        f" The tensor has shape {list(target._array.shape)}. Put the change under torch.no_grad() if it is an update "
        "of a parameter, or use the out-of-place form."
    )
