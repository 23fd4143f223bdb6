"""Ops of neural networks: embeddings, normalisations, attention, convolutions, losses."""

from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ...._dispatch.axes import Images
from ...._dispatch.op import OPS
from .._layout import Layout
from .._moving import added_up
from ..placement_types import Partial, Placement, Shard
from .choice import REPLICATE, SUM, Call, Case, Plan, cases, special
from .pointwise import elementwise
from .reduce import MEAN, divides


@cases("layer_norm", "rms_norm")
def _norm(call: Call, number: int) -> list[Case]:
    normalised = len(call.argument("normalized_shape"))
    others = tuple([REPLICATE] * (len(call.operands) - 1))
    return [Case((Shard(dim), *others), Shard(dim)) for dim in range(len(call.shapes[0]) - normalised)]


@cases("convolution")
def _convolution(call: Call, number: int) -> list[Case]:
    return [Case((Shard(0), *[REPLICATE] * (len(call.operands) - 1)), Shard(0))]


def of_images(call: Call, number: int) -> list[Case]:
    """The images of a batch are independent; so are the channels of a single image, if the op's record says it."""
    axes = call.op.axes
    assert isinstance(axes, Images)
    batch = len(call.shapes[0]) > axes.dimensions(call.op.name, call.args)
    sizes = {shape[:1] for shape in (*call.shapes, *[shape for shape, _ in call.forms()])}
    if len(sizes) != 1 or not (batch or axes.channels):
        return []
    return [Case(tuple([Shard(0)] * len(call.operands)), Shard(0))]


@cases("attention", "dropped_attention")
def _attention(call: Call, number: int) -> list[Case]:
    """Batches and heads are independent; a mask that is still to be drawn is that of the whole: nothing is cut then."""
    query, key, value = call.shapes[:3]
    draws = call.op.name == "attention" and call.argument("dropout_p")
    if draws or not len(query) == len(key) == len(value):
        return []
    found = []
    for dim in range(len(query) - 2):
        if query[dim] == key[dim] == value[dim]:
            mask: list[Placement] = []
            for shape in call.shapes[3:]:
                at = dim - (len(query) - len(shape))
                mask.append(Shard(at) if at >= 0 and shape[at] != 1 else REPLICATE)
            found.append(Case((Shard(dim), Shard(dim), Shard(dim), *mask), Shard(dim)))
    return found


@special("embedding")
def _embedding(call: Call) -> Plan:
    """Rows may be cut by their length, indices at will. Where the table is cut, each process looks up what it has."""
    weight, indices = call.operands
    mesh = weight.device_mesh
    inputs: list[list[Placement]] = [[], []]
    output: list[Placement] = []
    ndim = len(indices.shape)
    by_rows: list[int] = []
    for number in range(mesh.ndim):
        table, places = weight.placements[number], indices.placements[number]
        if isinstance(places, Shard):
            chosen: tuple[Placement, Placement, Placement] = (REPLICATE, places, Shard(places.dim))
        elif table.is_shard(1):
            chosen = (table, REPLICATE, Shard(ndim))
        elif table.is_shard(0):
            chosen = (table, REPLICATE, SUM)
            by_rows.append(number)
        else:
            chosen = (REPLICATE, REPLICATE, REPLICATE)
        for listed, each in zip((*inputs, output), chosen, strict=True):
            listed.append(each)
    layout = Layout(tuple(weight.shape), mesh, tuple(inputs[0]))

    def run(parts: list[Tensor], _: list[Layout]) -> Any:
        if not by_rows:
            return call.op(*call.args_with(parts))
        table, asked = parts
        count, start = layout.extents(0)
        here = (asked >= start) & (asked < start + count)
        padding = call.argument("padding_idx")
        own = padding - start if start <= padding < start + count else -1
        if not count:
            return table.new_zeros((*asked.shape, table.shape[1]))
        found = OPS["embedding"](table, (asked - start) * here, own, *call.args[3:])
        return found * here.unsqueeze(-1)

    return Plan([tuple(inputs[0]), tuple(inputs[1])], [tuple(output)], run)


def loss(call: Call, number: int) -> list[Case]:
    """Elementwise losses, and their sums and means."""
    found = [each for each in elementwise(call, number) if isinstance(each.output, Shard)]
    reduction = call.argument("reduction")
    if reduction in ("none", 0):
        return found
    if reduction in ("sum", 2):
        return [Case(each.inputs, SUM) for each in found]
    return [
        Case(each.inputs, MEAN) for each in found if isinstance(each.output, Shard) and divides(call, each.output.dim)
    ]


@special("nll_loss", "nll_loss2d")
def _nll_loss(call: Call) -> Plan:
    """Cut along the batch, each process sums its losses; a mean divides by what counts on all of them."""
    scores, target = call.operands[:2]
    weight, reduction = call.argument("weight"), call.argument("reduction")
    mesh = scores.device_mesh
    batched = len(scores.shape) > 1
    numbers = [
        number
        for number in range(mesh.ndim)
        if batched and (scores.placements[number].is_shard(0) or target.placements[number].is_shard(0))
    ]
    rows: list[Placement] = [Shard(0) if number in numbers else REPLICATE for number in range(mesh.ndim)]
    whole: list[Placement] = [REPLICATE] * mesh.ndim
    inputs = [tuple(rows), tuple(rows), *[tuple(whole)] * (len(call.operands) - 2)]
    if not numbers or reduction in ("none", 0):
        return Plan(inputs, [tuple(rows)] * len(call.forms()))
    outputs = tuple([Partial() if number in numbers else REPLICATE for number in range(mesh.ndim)])
    at = call.op.parameters.index("reduction")
    ignored = call.argument("ignore_index")

    def run(parts: list[Tensor], _: list[Layout]) -> Any:
        args = call.args_with(parts)
        args[at] = type(reduction)("sum") if isinstance(reduction, str) else 2
        results = call.op(*args)
        loss = results[0] if isinstance(results, tuple) else results
        if reduction in ("sum", 2):
            return results
        counted = parts[1] != ignored
        share = counted.to(loss.dtype) if weight is None else parts[2][parts[1] * counted] * counted
        loss = loss / added_up(share.sum().detach(), [mesh.get_group(number) for number in numbers])
        return (loss, *results[1:]) if isinstance(results, tuple) else loss

    return Plan(inputs, [outputs] * len(call.forms()), run)
