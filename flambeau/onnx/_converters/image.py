"""Images: resizing, sampling, padding by their own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._graph import Graph, Value
from .._sizes import Size
from ._table import Result, Unsupported, converter
from .shape import padded

_LINEAR = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bilinear2d_aa")
_CUBIC = ("upsample_bicubic2d", "upsample_bicubic2d_aa")
_NEAREST = tuple(f"upsample_nearest{middle}{rank}d" for middle in ("", "_exact") for rank in (1, 2, 3))


@converter(*_LINEAR, *_CUBIC, *_NEAREST)
def upsample(
    g: Graph, call: Result, self: Value, output_size: Sequence[int], align_corners: bool | None, scales: Any
) -> Value:
    mode = "nearest" if call.op in _NEAREST else "linear" if call.op in _LINEAR else "cubic"
    options: dict[str, Any] = {"mode": mode}
    if mode == "nearest":
        exact = "exact" in call.op
        options["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
        options["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
    if mode == "cubic":
        options["cubic_coeff_a"] = -0.5 if call.op.endswith("_aa") else -0.75
    if call.op.endswith("_aa"):
        options["antialias"] = 1
    before = self.rank - len(output_size)
    if scales is not None and all(each is not None for each in scales):
        factors = g.const(np.array([1.0] * before + [float(each) for each in scales], np.float32))
        return g.op("Resize", self, None, factors, **options)
    if any(isinstance(each, Size) for each in output_size):
        return g.op("Resize", self, None, None, g.ints(call.shape), **options)
    sizes = g.ints(list(output_size))
    return g.op("Resize", self, None, None, sizes, axes=list(range(before, self.rank)), **options)


@converter("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
           "replication_pad3d")  # fmt: skip
def pad(g: Graph, call: Result, self: Value, padding: Sequence[int]) -> Value:
    return padded(g, self, padding, "reflect" if call.op.startswith("reflection") else "edge")


@converter("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    g: Graph, call: Result, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    if g.opset < 20 and input.rank == 5:
        raise Unsupported("samples of volumes need opset 20 or later")
    modes = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    return g.op(
        "GridSample", input, grid, mode=modes[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode], align_corners=int(align_corners),
    )  # fmt: skip


@converter("affine_grid_generator")
def affine_grid(g: Graph, call: Result, theta: Value, size: Sequence[int], align_corners: bool) -> Value:
    spatial = list(size[2:])
    rank = len(spatial)
    lines = []
    for position in range(rank):  # x belongs to the last dimension
        length = spatial[rank - 1 - position]
        steps = g.cast(g.count_up(length), theta.dtype)
        if align_corners:
            gaps = g.op("Max", g.cast(g.scalar(length - 1), theta.dtype), 1)
            line = g.op("Sub", g.op("Div", g.op("Mul", steps, 2), gaps), 1)
        else:
            count = g.cast(g.scalar(length), theta.dtype)
            line = g.op("Sub", g.op("Div", g.op("Add", g.op("Mul", steps, 2), 1), count), 1)
        shaped = g.unsqueeze(line, *range(1, position + 1)) if position else line
        lines.append(g.unsqueeze(g.op("Expand", shaped, g.ints(spatial)), rank))
    lines.append(g.op("Expand", g.const(1, theta.dtype), g.ints([*spatial, 1])))
    points = g.reshape(g.op("Concat", *lines, axis=-1), [-1, rank + 1])
    made = g.op("MatMul", points, g.transpose(theta, [0, 2, 1]))
    return g.reshape(made, call.shape)
