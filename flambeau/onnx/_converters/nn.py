"""Convolutions, normalisations, bags of embeddings, windows of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._graph import INT64, Graph, Value
from ._table import Result, converter


@converter("convolution")
def convolution(
    g: Graph, call: Result, input: Value, weight: Value, bias: Value | None, bias_sizes: Any, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    *ignored: Any,
) -> Value:  # fmt: skip
    options: dict[str, Any] = {
        "kernel_shape": [int(each) for each in (weight.shape or ())[2:]], "strides": list(stride),
        "pads": [*padding, *padding], "dilations": list(dilation), "group": groups,
    }  # fmt: skip
    if not transposed:
        return g.op("Conv", input, weight, bias, **options)
    if any(output_padding):
        options["output_padding"] = list(output_padding)
    return g.op("ConvTranspose", input, weight, bias, **options)


@converter("conv_tbc")
def conv_tbc(g: Graph, call: Result, self: Value, weight: Value, bias: Value, pad: int) -> Value:
    made = g.op("Conv", g.transpose(self, [1, 2, 0]), g.transpose(weight, [2, 1, 0]), bias, pads=[pad, pad])
    return g.transpose(made, [2, 0, 1])


# ----- normalisations -------------------------------------------------------------------------------------------------


def _by_channel(g: Graph, values: Value, rank: int) -> Value:
    return g.unsqueeze(values, *range(1, rank - 1)) if rank > 2 else values


@converter("native_batch_norm", "native_batch_norm_legit", "native_batch_norm_legit_no_stats",
           "native_batch_norm_legit_no_training", "batch_norm_with_update")  # fmt: skip
def batch_norm(
    g: Graph, call: Result, input: Value, weight: Value | None, bias: Value | None, running_mean: Value | None,
    running_var: Value | None, training: bool, eps: float, kept: Any,
) -> list[Value | None]:  # fmt: skip
    channels = int((input.shape or ())[1])
    scale = weight if weight is not None else g.const(np.ones(channels, input.dtype))
    shift = bias if bias is not None else g.const(np.zeros(channels, input.dtype))
    if not training:
        assert running_mean is not None
        assert running_var is not None
        empty = g.const(np.zeros(0, call.dtypes[1]))
        made = g.op("BatchNormalization", input, scale, shift, running_mean, running_var, epsilon=float(eps))
        return [made, empty, empty, running_var]
    dims = [0, *range(2, input.rank)]
    mean = g.reduce("ReduceMean", input, dims, True)
    gap = g.op("Sub", input, mean)
    variance = g.reduce("ReduceMean", g.op("Mul", gap, gap), dims, True)
    rstd = g.op("Reciprocal", g.op("Sqrt", g.op("Add", variance, eps)))
    scaled = g.op("Mul", g.op("Mul", gap, rstd), _by_channel(g, scale, input.rank))
    made = g.op("Add", scaled, _by_channel(g, shift, input.rank))
    return [made, *(g.flat(each) for each in (mean, rstd, variance))]


@converter("layer_norm")
def layer_norm(
    g: Graph, call: Result, input: Value, normalized_shape: Sequence[int], weight: Value | None, bias: Value | None,
    eps: float, kept: Any,
) -> list[Value]:  # fmt: skip
    scale = weight if weight is not None else g.const(np.ones([int(each) for each in normalized_shape], input.dtype))
    return [g.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=float(eps))]


@converter("rms_norm")
def rms_norm(
    g: Graph, call: Result, input: Value, normalized_shape: Sequence[int], weight: Value | None, eps: float
) -> list[Value]:
    dims = [-position - 1 for position in range(len(normalized_shape))]
    wide = g.cast(input, np.float32) if input.dtype.itemsize == 2 else input
    squares = g.reduce("ReduceMean", g.op("Mul", wide, wide), dims, True)
    rstd = g.op("Reciprocal", g.op("Sqrt", g.op("Add", squares, float(eps))))
    made = g.op("Mul", wide, rstd)
    if weight is not None:
        made = g.op("Mul", made, g.cast(weight, wide.dtype))
    return [g.cast(made, input.dtype), rstd]


@converter("group_norm")
def group_norm(
    g: Graph, call: Result, input: Value, weight: Value | None, bias: Value | None, batch: int, channels: int,
    inner: int, group: int, eps: float, kept: Any,
) -> list[Value]:  # fmt: skip
    rows = g.reshape(input, [batch, group, inner * (channels // group)])
    ones, zeros = np.ones(group, input.dtype), np.zeros(group, input.dtype)
    made = g.op("InstanceNormalization", rows, g.const(ones), g.const(zeros), epsilon=float(eps))
    made = g.reshape(made, call.shape)
    spread = (*[1] * (input.rank - 2),)
    for kind, values in (("Mul", weight), ("Add", bias)):
        if values is not None:
            made = g.op(kind, made, g.reshape(values, [channels, *spread]))
    return [made]


@converter("bags")
def bags(
    g: Graph, call: Result, weight: Value, indices: Value, offsets: Value, mode: int, per_sample_weights: Value | None,
    scale_grad_by_freq: bool, sparse: bool, include_last_offset: bool, padding_idx: int,
) -> list[Value]:  # fmt: skip
    """Row by row: to which bag it belongs, then a product with the table of bags and rows."""
    count = g.scalar((indices.shape or ())[0])
    starts = g.cast(offsets, INT64)
    if include_last_offset:
        starts = g.slice(starts, 0, 0, -1)
    rest = g.slice(starts, 0, 1, np.iinfo(np.int64).max)
    ends = g.op("Concat", rest, g.unsqueeze(count, 0), axis=0)
    places = g.op("Range", g.const(0, INT64), count, g.const(1, INT64))
    inside = g.op(
        "And", g.op("GreaterOrEqual", places, g.unsqueeze(starts, 1), dtype=bool),
        g.op("Less", places, g.unsqueeze(ends, 1), dtype=bool),
    )  # fmt: skip
    if padding_idx >= 0:
        inside = g.op("And", inside, g.op("Not", g.op("Equal", g.cast(indices, INT64), padding_idx, dtype=bool)))
    rows = g.op("Gather", weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = g.op("Mul", rows, g.unsqueeze(per_sample_weights, 1))
    sizes = g.reduce("ReduceSum", g.cast(inside, INT64), [1], False)
    bag = g.op("ArgMax", g.cast(inside, np.int32), dtype=INT64, axis=0, keepdims=0)
    if mode == 2:
        spread = g.where(g.unsqueeze(inside, 2), rows, -np.inf)
        made = g.reduce("ReduceMax", spread, [1], False)
        empty = g.op("Equal", g.unsqueeze(sizes, 1), 0, dtype=bool)
        return [g.where(empty, 0, made), g.cast(bag, call.dtypes[1]), g.cast(sizes, call.dtypes[2])]
    made = g.op("MatMul", g.cast(inside, weight.dtype), rows)
    if mode == 1:
        made = g.op("Div", made, g.unsqueeze(g.op("Max", g.cast(sizes, weight.dtype), 1), 1))
    return [made, g.cast(bag, call.dtypes[1]), g.cast(sizes, call.dtypes[2])]


# ----- windows --------------------------------------------------------------------------------------------------------


def _window_places(g: Graph, size: int, kernel: int, dilation: int, padding: int, stride: int) -> Value:
    """For each place in the window and each step the row that it reads, in the padded image."""
    count = (size + (2 * padding - dilation * (kernel - 1) - 1)) // stride + 1
    steps = g.op("Mul", g.count_up(count), stride)
    inner = g.op("Mul", g.count_up(kernel), dilation)
    return g.op("Add", g.unsqueeze(inner, 1), steps)


@converter("im2col")
def im2col(
    g: Graph, call: Result, self: Value, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
    stride: Sequence[int],
) -> Value:  # fmt: skip
    *outside, height, width = self.shape or ()
    outer = len(outside)
    image = self
    if any(padding):
        pads = g.ints([padding[0], padding[1], padding[0], padding[1]])
        image = g.op("Pad", self, pads, None, g.ints([outer, outer + 1]))
    down, across = (
        _window_places(g, size, *each)
        for size, each in zip((height, width), zip(kernel_size, dilation, padding, stride, strict=True), strict=True)
    )
    rows = g.op("Gather", image, down, axis=outer)
    cells = g.op("Gather", rows, across, axis=outer + 2)
    order = [*range(outer), outer, outer + 2, outer + 1, outer + 3]
    return g.reshape(g.transpose(cells, order), call.shape)


@converter("col2im")
def col2im(
    g: Graph, call: Result, self: Value, output_size: Sequence[int], kernel_size: Sequence[int],
    dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int],
) -> Value:  # fmt: skip
    value = self if self.rank == 3 else g.unsqueeze(self, 0)
    made = g.op(
        "Col2Im", value, g.ints(output_size), g.ints(kernel_size), dilations=list(dilation),
        pads=[*padding, *padding], strides=list(stride),
    )  # fmt: skip
    return g.reshape(made, call.shape)
