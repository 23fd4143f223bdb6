"""Ops that change a tensor, that read it on the host, or that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.tensor import Tensor
from .._dtensor import DTensor
from .._layout import Layout
from .._moving import move
from ..placement_types import Partial, Replicate
from .choice import Call, Plan, special


@special("copy_")
def _copy(call: Call) -> Plan:
    """The source is brought to where the target is."""
    target = call.operands[0]
    places = target.placements
    if len(call.operands) == 1:
        return Plan([places], [])
    source = call.operands[1]
    if source.shape != target.shape:
        return Plan([places, tuple([Replicate()] * len(places))], [], lambda parts, _: _copy_broadcast(call, parts))
    return Plan([places, places], [])


def _copy_broadcast(call: Call, parts: list[Tensor]) -> None:
    layout = call.operands[0]._layout
    everywhere = Layout(layout.shape, layout.mesh, tuple([Replicate()] * layout.mesh.ndim))
    call.op(parts[0], move(parts[1].expand(layout.shape), everywhere, layout))


@special("fill_")
def _fill(call: Call) -> Plan:
    target = call.operands[0]
    summands = [
        target.device_mesh.get_local_rank(number) for number, each in enumerate(target.placements)
        if isinstance(each, Partial) and each.reduce_op == "sum"
    ]  # fmt: skip
    value = 0 if any(summands) else call.args[1]  # of a sum, the first process has all of it
    return Plan([target.placements], [], lambda parts, _: call.op(parts[0], value))


@special(
    "bernoulli_number_ bernoulli_tensor_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ random_between_ "
    "uniform_ dropout_mask_"
)
def _draw(call: Call) -> Plan:
    """Every process draws the numbers of the whole tensor and keeps its part: the result is that of one process."""
    target = call.operands[0]
    layout = target._layout

    def run(parts: list[Tensor], _: list[Layout]) -> None:
        everywhere = Layout(layout.shape, layout.mesh, tuple([Replicate()] * layout.mesh.ndim))
        if layout.placements == everywhere.placements or target.is_meta:
            call.op(*call.args_with(parts))
            return
        whole = parts[0].new_empty(layout.shape)
        call.op(*call.args_with([whole, *parts[1:]]))
        parts[0].detach().copy_(move(whole, everywhere, layout))

    others = [tuple([Replicate()] * layout.mesh.ndim)] * (len(call.operands) - 1)
    return Plan([layout.placements, *others], [], run)


@special("item", "elements", "equal")
def _read(call: Call) -> Callable[..., Any]:
    """The host looks at the whole tensor."""
    return lambda *args: call.op(*[each.full_tensor() if isinstance(each, DTensor) else each for each in args])
