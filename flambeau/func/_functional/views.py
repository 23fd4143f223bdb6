"""Views as steps that can be taken and undone: the window on a source, and the source with a window exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import OPS, Op
from ..._ops.shape import complex_view, conjugate, rearrange, view
from ..._ops.shape import view_copy as _forms_that_copy  # noqa: F401  # they enter the table of ops

Inverse = Callable[..., Tensor]
"""From whether views are to be copies, the source of a view, what the view becomes, its number and the op's further
arguments."""


class Step:
    """One view op on the way from a memory's value to a window: its further arguments, and which result it is."""

    __slots__ = ("number", "op", "rest")

    def __init__(self, op: Op, rest: Sequence[Any], number: int) -> None:
        self.op = op
        self.rest = rest
        self.number = number

    def taken(self, source: Tensor, copies: bool) -> Tensor:
        """The window on `source`."""
        views = view_op(self.op, copies)(source, *self.rest)
        view: Tensor = views[self.number] if type(views) is tuple else views
        return view

    def undone(self, source: Tensor, changed: Tensor, copies: bool) -> Tensor:
        """`source`, of which the window is `changed`."""
        inverse = _INVERSES.get(self.op.name.removesuffix("_"))
        if inverse is not None:
            return inverse(copies, source, changed, self.number, *self.rest)
        copied = source.clone()  # nobody else has seen it: what is written there changes nothing
        self.taken(copied, False).copy_(changed)
        return copied


def view_op(op: Op, copies: bool) -> Callable[..., Any]:
    """A view op, or where `copies` its form with memory of its own."""
    if not copies:
        return op
    twin = OPS.get(f"{op.name.removesuffix('_')}_copy".replace("squeeze_all", "squeeze"))
    if twin is not None:
        return twin

    def copied(*args: Any) -> Any:
        views = op(*args)
        return tuple([each.clone() for each in views]) if type(views) is tuple else views.clone()

    return copied


def _storing(op: Op) -> Inverse:
    """The inverse by an op that stores a view's elements and has the view's arguments."""
    return lambda copies, source, changed, number, *rest: op(source, changed, *rest)


def _undone_by(op: Op) -> Inverse:
    """The inverse by a view op that undoes the first, with the same arguments."""
    return lambda copies, source, changed, number, *rest: view_op(op, copies)(changed, *rest)


def _same_elements(copies: bool, source: Tensor, changed: Tensor, number: int, *rest: Any) -> Tensor:
    """A view of all elements in the same order: only the shape differs."""
    made: Tensor = view_op(view._view, copies)(changed.contiguous(), source._array.shape)
    return made


def _permuted(copies: bool, source: Tensor, changed: Tensor, number: int, dims: Sequence[int]) -> Tensor:
    wrapped = [each % len(dims) for each in dims]
    made: Tensor = view_op(view._permute, copies)(changed, tuple([wrapped.index(dim) for dim in range(len(dims))]))
    return made


def _split(copies: bool, source: Tensor, changed: Tensor, number: int, size: int, dim: int) -> Tensor:
    start = number * size
    return rearrange._slice_scatter(source, changed, dim, start, start + changed._array.shape[dim], 1)


def _split_with_sizes(
    copies: bool, source: Tensor, changed: Tensor, number: int, sizes: Sequence[int], dim: int
) -> Tensor:
    start = sum(sizes[:number])
    return rearrange._slice_scatter(source, changed, dim, start, start + sizes[number], 1)


def _unbind(copies: bool, source: Tensor, changed: Tensor, number: int, dim: int) -> Tensor:
    return rearrange._select_scatter(source, changed, dim, number)


def _view_dtype(copies: bool, source: Tensor, changed: Tensor, number: int, dtype: Any) -> Tensor:
    made: Tensor = view_op(complex_view._view_dtype, copies)(changed, source.dtype)
    return made


_INVERSES: dict[str, Inverse] = {
    **dict.fromkeys(("alias", "detach"), lambda copies, source, changed, number: changed),
    **dict.fromkeys(
        ("view", "reshape_alias", "unsqueeze", "squeeze_all", "squeeze_dim", "squeeze_dims"), _same_elements
    ),
    "select": _storing(rearrange._select_scatter),
    "slice": _storing(rearrange._slice_scatter),
    "diagonal": _storing(rearrange._diagonal_scatter),
    "as_strided": _storing(rearrange._as_strided_scatter),
    "transpose": _undone_by(view._transpose),
    "t": _undone_by(view._t),
    "conj": lambda copies, source, changed, number: conjugate._conj(changed),
    "neg_view": lambda copies, source, changed, number: conjugate._neg_view(changed),
    "permute": _permuted,
    "split": _split,
    "split_with_sizes": _split_with_sizes,
    "unbind": _unbind,
    "view_dtype": _view_dtype,
    "view_as_real": _undone_by(complex_view._view_as_complex),
    "view_as_complex": _undone_by(complex_view._view_as_real),
}
