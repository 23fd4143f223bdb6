"""Views and rearrangements: a cut dimension stays cut where it can be found again in the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.tensor import Tensor
from .._layout import Layout
from ..placement_types import Shard
from .choice import REPLICATE, SUM, Call, Case, cases, runs

Run = Callable[[list[Tensor], list[Layout]], Any]


def _linear(places: list[tuple[int, int]]) -> list[Case]:
    """Dimensions of the one operand with their places in the result; what is still to be added up stays so."""
    return [*(Case((Shard(before),), Shard(after)) for before, after in places), Case((SUM,), SUM)]


@cases("view", "reshape_alias", "unsafe_view", "view_copy")
def _view(call: Call, number: int) -> list[Case]:
    return _linear(_same_outermost(call))


def _same_outermost(call: Call) -> list[tuple[int, int]]:
    """The dimensions that are the outermost of a group which the view folds or unfolds, and stay so."""
    before, after = call.shapes[0], call.forms()[0][0]
    if 0 in before:
        return [(dim, dim) for dim in range(len(before))] if before == after else []
    found = []
    for own, other in _groups(before, after):
        if not own or not other:
            continue
        outer, result = own[0], other[0]
        if before[outer] == after[result] or (_divides(call, before[outer]) and _divides(call, after[result])):
            found.append((outer, result))
        if len(own) == len(other):  # nothing is folded
            found += [pair for pair in zip(own, other, strict=True) if pair not in found]
    return found


def _divides(call: Call, size: int) -> bool:
    return size % call.operands[0].device_mesh.size() == 0


def _groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of two shapes, in groups with the same number of elements; those of size 1 are left out."""
    left = [dim for dim in range(len(before)) if before[dim] != 1]
    right = [dim for dim in range(len(after)) if after[dim] != 1]
    found = []
    while left and right:
        own, other = [left.pop(0)], [right.pop(0)]
        one, two = before[own[0]], after[other[0]]
        while one != two:
            if one < two:
                own.append(left.pop(0))
                one *= before[own[-1]]
            else:
                other.append(right.pop(0))
                two *= after[other[-1]]
        found.append((own, other))
    return found


@runs("view", "reshape_alias", "unsafe_view", "view_copy")
def _run_view(call: Call) -> Run:
    return lambda parts, layouts: parts[0].reshape(layouts[0].local_shape())


@cases("expand", "expand_copy")
def _expand(call: Call, number: int) -> list[Case]:
    before, after = call.shapes[0], call.forms()[0][0]
    missing = len(after) - len(before)
    return _linear([(dim, dim + missing) for dim in range(len(before)) if before[dim] == after[dim + missing]])


@runs("expand", "expand_copy")
def _run_expand(call: Call) -> Run:
    return lambda parts, layouts: call.op(parts[0], layouts[0].local_shape())


@cases("permute", "permute_copy")
def _permute(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    return _linear([(dim % ndim, place) for place, dim in enumerate(call.argument("dims"))])


@cases("t", "t_copy", "transpose", "transpose_copy")
def _transpose(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    if ndim < 2:
        return _linear([(dim, dim) for dim in range(ndim)])
    one, two = (0, 1) if call.op.name.startswith("t_") or call.op.name == "t" else call.args[1:3]
    swapped = {one % ndim: two % ndim, two % ndim: one % ndim}
    return _linear([(dim, swapped.get(dim, dim)) for dim in range(ndim)])


@cases("unsqueeze", "unsqueeze_copy")
def _unsqueeze(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    new = call.argument("dim") % (ndim + 1)
    return _linear([(dim, dim + (dim >= new)) for dim in range(ndim)])


@cases("squeeze_all squeeze_copy squeeze_dim squeeze_dim_copy squeeze_dims squeeze_dims_copy")
def _squeeze(call: Call, number: int) -> list[Case]:
    shape = call.shapes[0]
    given = call.args[1] if len(call.args) > 1 else range(len(shape))
    dims = {each % max(len(shape), 1) for each in ([given] if isinstance(given, int) else given)}
    removed = {dim for dim in dims if dim < len(shape) and shape[dim] == 1}
    left = [dim for dim in range(len(shape)) if dim not in removed]
    return _linear([(dim, place) for place, dim in enumerate(left)])


@cases("select select_copy slice slice_copy split split_copy split_with_sizes split_with_sizes_copy unbind unbind_copy")
def _window(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    along = call.argument("dim") % ndim
    removes = len(call.forms()[0][0]) < ndim if call.forms() else False
    return _linear([(dim, dim - (removes and dim > along)) for dim in range(ndim) if dim != along])


@cases("cat")
def _cat(call: Call, number: int) -> list[Case]:
    ndim, count = len(call.forms()[0][0]), len(call.operands)
    if any(len(shape) != ndim for shape in call.shapes):
        return []
    along = call.argument("dim") % ndim
    others = [Case(tuple([Shard(dim)] * count), Shard(dim)) for dim in range(ndim) if dim != along]
    return [*others, Case(tuple([SUM] * count), SUM)]


@cases("stack")
def _stack(call: Call, number: int) -> list[Case]:
    ndim, count = len(call.shapes[0]), len(call.operands)
    new = call.argument("dim") % (ndim + 1)
    others = [Case(tuple([Shard(dim)] * count), Shard(dim + (dim >= new))) for dim in range(ndim)]
    return [*others, Case(tuple([SUM] * count), SUM)]


@cases("repeat")
def _repeat(call: Call, number: int) -> list[Case]:
    repeats, shape = call.argument("repeats"), call.shapes[0]
    missing = len(repeats) - len(shape)
    return _linear([(dim, dim + missing) for dim in range(len(shape)) if repeats[dim + missing] == 1])


@cases("roll")
def _roll(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    dims = {each % ndim for each in call.argument("dims")}
    return _linear([(dim, dim) for dim in range(ndim) if dims and dim not in dims])


@cases("index_select")
def _index_select(call: Call, number: int) -> list[Case]:
    ndim = len(call.shapes[0])
    along = call.argument("dim") % max(ndim, 1)
    return [
        *(Case((Shard(dim), REPLICATE), Shard(dim)) for dim in range(ndim) if dim != along),
        *([Case((REPLICATE, Shard(0)), Shard(along))] if ndim else []),
    ]


@cases("gather")
def _gather(call: Call, number: int) -> list[Case]:
    own, index = call.shapes
    along = call.argument("dim") % max(len(own), 1)
    return [
        Case((Shard(dim), Shard(dim)), Shard(dim)) for dim in range(len(own)) if dim != along and own[dim] == index[dim]
    ]
