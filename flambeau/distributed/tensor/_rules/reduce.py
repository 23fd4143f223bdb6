"""Ops along dimensions: the other dimensions may be cut. Sums over a cut one are still to be added up."""

from __future__ import annotations

import math
from typing import Any

from ...._core.modes import THREAD
from ...._core.tensor import Tensor
from ...._dispatch.op import OPS
from .._layout import Layout
from .._moving import added_up, moved
from ..placement_types import Partial, Shard
from .choice import REPLICATE, SUM, Call, Case, Cases, Plan, cases, special

MEAN = Partial("avg")


def dims_of(call: Call, names: tuple[str, ...]) -> set[int]:
    """The dimensions that an op works along, by the names of its parameters."""
    ndim = max(len(call.shapes[0]), 1)
    found: set[int] = set()
    for name in names:
        given = call.argument(name)
        if given is None:
            return set(range(ndim))
        found |= {each % ndim for each in ([given] if isinstance(given, int) else given)}
    return found


def kept_dim(call: Call, dim: int, along: set[int]) -> int:
    """Where a dimension of the operand is in the results."""
    removed = len(call.forms()[0][0]) < len(call.shapes[0])
    return dim - len([each for each in along if each < dim]) if removed else dim


def all_but(names: tuple[str, ...]) -> Cases:
    """The cases of an op that works along the dimensions in its parameters `names`."""

    def listed(call: Call, number: int) -> list[Case]:
        along = dims_of(call, names)
        if any(len(shape) != len(call.shapes[0]) for shape in call.shapes):
            return []  # dimensions of the others are counted otherwise
        return [
            Case(tuple([Shard(dim)] * len(call.operands)), Shard(kept_dim(call, dim, along)))
            for dim in range(len(call.shapes[0]))
            if dim not in along
        ]

    return listed


_others = all_but(("dim",))


@cases("sum_dim", "nansum")
def _sum(call: Call, number: int) -> list[Case]:
    linear = [Case((SUM,), SUM)] if call.op.name == "sum_dim" else []
    return [*_others(call, number), *(Case((Shard(dim),), SUM) for dim in dims_of(call, ("dim",))), *linear]


@cases("sum_all")
def _sum_all(call: Call, number: int) -> list[Case]:
    return [*(Case((Shard(dim),), SUM) for dim in range(len(call.shapes[0]))), Case((SUM,), SUM)]


@cases("mean_dim")
def _mean(call: Call, number: int) -> list[Case]:
    return [*_others(call, number), *_means(call, dims_of(call, ("dim",))), Case((SUM,), SUM)]


@cases("mean_all")
def _mean_all(call: Call, number: int) -> list[Case]:
    return [*_means(call, set(range(len(call.shapes[0])))), Case((SUM,), SUM)]


def _means(call: Call, along: set[int]) -> list[Case]:
    """A mean over a cut dimension is the mean of the parts' means, if those are of one size."""
    return [Case((Shard(dim),), MEAN) for dim in along if divides(call, dim)]


def divides(call: Call, dim: int, position: int = 0) -> bool:
    """Whether all processes have parts of one size, however many dimensions of the mesh cut it."""
    size = call.shapes[position][dim]
    return size > 0 and size % call.operands[position].device_mesh.size() == 0


@special("vector_norm")
def _vector_norm(call: Call) -> Plan:
    """Powers are added up over the processes: the tensor itself is not moved."""
    tensor, order, dim, keepdim = call.operands[0], *call.args[1:4]
    along = dims_of(call, ("dim",))
    mesh = tensor.device_mesh
    recorded = tensor.requires_grad and THREAD.modes.grad and (order == 0 or not math.isfinite(order))
    source = tuple([REPLICATE if recorded or isinstance(each, Partial) else each for each in tensor.placements])
    cut = [number for number, each in enumerate(source) if isinstance(each, Shard) and each.dim in along]
    outputs: list[Any] = []
    for number, each in enumerate(source):
        kept = isinstance(each, Shard) and number not in cut
        outputs.append(Shard(kept_dim(call, each.dim, along)) if kept and isinstance(each, Shard) else REPLICATE)

    def run(parts: list[Tensor], layouts: list[Layout]) -> Tensor:
        part = parts[0]
        if not cut:
            result: Tensor = OPS["vector_norm"](part, order, dim, keepdim, *call.args[4:])
            return result
        if not math.isfinite(order) or order == 0:
            norms = part.abs() if order else (part != 0).to(part.dtype)
            return _combined(norms, layouts[0], cut, order, sorted(along), keepdim)
        own = OPS["vector_norm"](part, order, dim, keepdim, *call.args[4:])
        powers: Tensor = own**order
        total: Tensor = added_up(powers, [mesh.get_group(number) for number in cut]) ** (1 / order)
        return total

    return Plan([source], [tuple(outputs)], run)


def _combined(norms: Tensor, layout: Layout, cut: list[int], order: float, along: list[int], keepdim: bool) -> Tensor:
    """The largest or smallest magnitude, or the number of those that are not zero."""
    how = "sum" if order == 0 else "max" if order > 0 else "min"
    own = norms.sum(along, keepdim) if order == 0 else norms.amax(along, keepdim) if order > 0 else norms.amin(
        along, keepdim
    )  # fmt: skip
    source = layout
    for number in cut:
        source = source.with_placement(number, Partial(how))
    return moved(own, source, layout)
