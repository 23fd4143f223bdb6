"""From one layout to another: which collective moves what, and the way back for gradients."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._ops.shape.join import cat
from ...autograd.function import Function
from .. import _calls
from .._world import ProcessGroup
from ..reductions import ReduceOp
from ._layout import Layout
from .placement_types import Partial, Placement, Replicate, Shard

_OPS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "max": ReduceOp.MAX, "min": ReduceOp.MIN, "product": ReduceOp.PRODUCT
}  # fmt: skip


def moved(local: Tensor, source: Layout, target: Layout) -> Tensor:
    """This process's part of a tensor in the layout `target`, from that in `source`; derivatives follow."""
    if source.placements == target.placements:
        return local
    result: Tensor = _Moved.apply(local, source, target)
    return result


def added_up_in_backward(local: Tensor, groups: list[ProcessGroup]) -> Tensor:
    """A tensor whose gradients are parts of a sum over the processes of some groups."""
    result: Tensor = _AddedUp.apply(local, groups)
    return result


class _Moved(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, source: Layout, target: Layout) -> Tensor:
        ctx.layouts = source, target
        return move(local.detach(), source, target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        source, target = ctx.layouts
        back: Tensor = moved(grad, target.of_gradient(), source.of_gradient())
        means = [
            source.mesh.size(number)
            for number, each in enumerate(source.placements)
            if each.is_partial("avg") and target.placements[number] != each
        ]
        for size in means:
            back = back / size
        return back, None, None


class _AddedUp(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, groups: list[ProcessGroup]) -> Tensor:
        ctx.groups = groups
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return added_up(grad, ctx.groups), None


def added_up(local: Tensor, groups: list[ProcessGroup]) -> Tensor:
    """The sum over the processes of some groups; its gradient is the same for all of them."""
    result: Tensor = _Sum.apply(local, groups)
    return result


class _Sum(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, groups: list[ProcessGroup]) -> Tensor:
        result = local.detach().clone().contiguous()
        for group in groups:
            _calls.all_reduce(result, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None


def move(local: Tensor, source: Layout, target: Layout) -> Tensor:
    """`moved`, out of the graph."""
    numbers = [number for number in range(source.mesh.ndim) if source.placements[number] != target.placements[number]]
    now = source
    if not (source.cuts_twice() or target.cuts_twice()):
        for number in numbers:
            following = now.with_placement(number, target.placements[number])
            if not following.cuts_twice():
                local, now = _step(local, now, number, target.placements[number]), following
        numbers = [number for number in numbers if now.placements[number] != target.placements[number]]
    # Where one dimension is cut twice, the inner cut is undone first and made last.
    order = now.order()
    first = min((order.index(number) for number in numbers), default=len(order)) if order == target.order() else 0
    for number in reversed(order[first:]):
        if not now.placements[number].is_replicate() and (number in numbers or now.placements[number].is_shard()):
            local = _step(local, now, number, Replicate())
            now = now.with_placement(number, Replicate())
    for number in target.order():
        if now.placements[number] != target.placements[number]:
            local = _step(local, now, number, target.placements[number])
            now = now.with_placement(number, target.placements[number])
    return local


def _step(local: Tensor, now: Layout, number: int, placement: Placement) -> Tensor:
    """Change the placement along one dimension of the mesh."""
    group, before = now.mesh.get_group(number), now.placements[number]
    if isinstance(before, Shard) and isinstance(placement, Replicate):
        return gathered(local, before.dim, now.parts_along(number), group)
    if isinstance(placement, Shard):
        following = now.with_placement(number, placement)
        sizes = following.parts_along(number)
        if isinstance(before, Replicate):
            start = sum(sizes[: group.rank()])
            return local.narrow(placement.dim, start, sizes[group.rank()]).contiguous()
        if isinstance(before, Partial):
            return _reduced_part(local, placement.dim, sizes, before, group)
        assert isinstance(before, Shard)
        return _exchanged(local, before.dim, now.parts_along(number), placement.dim, sizes, group)
    if isinstance(before, Partial) and isinstance(placement, Replicate):
        result = local.clone().contiguous()
        _calls.all_reduce(result, _OPS[before.reduce_op], group)
        return result
    if isinstance(before, Replicate) and isinstance(placement, Partial):
        return _as_summands(local, placement, group)
    raise refuse_summands(before, placement)


def refuse_summands(before: Placement, after: Placement) -> RuntimeError:
    """The error of a move that makes a sum of what is none."""
    return RuntimeError(
        f"Can not redistribute from {before} to {after}, redistributing to Partial is for internal use only!"
    )


def _as_summands(local: Tensor, placement: Partial, group: ProcessGroup) -> Tensor:
    """What a tensor that all have is a combination of: the first one has it, and a sum has zeros otherwise."""
    if placement.reduce_op == "sum" and group.rank():
        return local.new_zeros(local.shape)
    return local.clone()


def _padded(local: Tensor, dim: int, size: int) -> Tensor:
    """A part made as long as the longest: all processes have to give the same number of elements."""
    missing = size - local.shape[dim]
    if not missing:
        return local.contiguous()
    shape = list(local.shape)
    shape[dim] = missing
    return cat([local, local.new_zeros(shape)], dim)


def gathered(local: Tensor, dim: int, sizes: list[int], group: ProcessGroup) -> Tensor:
    """The parts of all processes, one behind the other."""
    longest = max(sizes)
    given = _padded(local, dim, longest)
    parts = [given.new_empty(given.shape) for _ in sizes]
    _calls.all_gather(parts, given, group)
    return cat([each.narrow(dim, 0, size) for each, size in zip(parts, sizes, strict=True)], dim)


def _reduced_part(local: Tensor, dim: int, sizes: list[int], before: Partial, group: ProcessGroup) -> Tensor:
    longest = max(sizes)
    parts = [_padded(each, dim, longest) for each in local.split(sizes, dim)]
    result = parts[0].new_empty(parts[0].shape)
    _calls.reduce_scatter(result, parts, _OPS[before.reduce_op], group)
    return result.narrow(dim, 0, sizes[group.rank()]).contiguous()


def _exchanged(
    local: Tensor, before: int, sizes_before: list[int], after: int, sizes_after: list[int], group: ProcessGroup
) -> Tensor:
    """From parts along one dimension to parts along another."""
    given = [each.contiguous() for each in local.split(sizes_after, after)]
    shape = list(local.shape)
    shape[after] = sizes_after[group.rank()]
    parts = []
    for size in sizes_before:
        shape[before] = size
        parts.append(local.new_empty(shape))
    _calls.all_to_all(parts, given, group)
    return cat(parts, before)
