"""Operators that make and arrange tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from .._element_types import torch_type
from ._table import NotRead, Operator, axes_of, numbers, reader


@reader("Constant")
def constant(node: Operator) -> Any:
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        found = node.get(name)
        if found is not None:
            kind = flambeau.float32 if "float" in name else flambeau.int64
            return found if isinstance(found, Tensor) else flambeau.tensor(found, dtype=kind)
    raise NotRead("a constant that is neither a tensor nor a number")


@reader("ConstantOfShape")
def constant_of_shape(node: Operator, shape: Tensor) -> Any:
    value = node.get("value")
    sizes = [int(each) for each in numbers(shape)]
    if value is None:
        return flambeau.zeros(sizes)
    return flambeau.full(sizes, value.reshape(()).item(), dtype=value.dtype)


@reader("Shape")
def shape(node: Operator, x: Tensor) -> Any:
    sizes = list(x.shape)[slice(node.get("start", 0), node.get("end"))]
    return flambeau.tensor(sizes, dtype=flambeau.int64)


@reader("Size")
def size(node: Operator, x: Tensor) -> Any:
    return flambeau.tensor(x.numel(), dtype=flambeau.int64)


@reader("Reshape")
def reshape(node: Operator, x: Tensor, wanted: Tensor | None = None) -> Any:
    sizes = list(node.get("shape", ())) if wanted is None else [int(each) for each in numbers(wanted)]
    if not node.get("allowzero", 0):
        sizes = [x.shape[dim] if each == 0 else each for dim, each in enumerate(sizes)]
    return x.reshape(sizes)


@reader("Flatten")
def flatten(node: Operator, x: Tensor) -> Any:
    axis = node.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    rows = math.prod(x.shape[:axis])
    return x.reshape(rows, math.prod(x.shape[axis:]))


@reader("Transpose")
def transpose(node: Operator, x: Tensor) -> Any:
    return x.permute(node.get("perm", list(range(x.dim()))[::-1]))


@reader("Squeeze")
def squeeze(node: Operator, x: Tensor, axes: Tensor | None = None) -> Any:
    dims = axes_of(node, axes)
    return x.squeeze() if dims is None else x.squeeze(tuple(dims))


@reader("Unsqueeze")
def unsqueeze(node: Operator, x: Tensor, axes: Tensor | None = None) -> Any:
    dims = axes_of(node, axes) or []
    rank = x.dim() + len(dims)
    for dim in sorted(each % rank for each in dims):
        x = x.unsqueeze(dim)
    return x


@reader("Expand")
def expand(node: Operator, x: Tensor, wanted: Tensor) -> Any:
    sizes = [int(each) for each in numbers(wanted)]
    return x.expand(flambeau.broadcast_shapes(tuple(x.shape), tuple(sizes)))


@reader("Tile")
def tile(node: Operator, x: Tensor, repeats: Tensor) -> Any:
    return x.repeat([int(each) for each in numbers(repeats)]) if x.dim() else x


@reader("Concat")
def concat(node: Operator, *values: Tensor) -> Any:
    return flambeau.cat(list(values), node.get("axis", 1))


@reader("Split")
def split(node: Operator, x: Tensor, sizes: Tensor | None = None) -> Sequence[Tensor]:
    axis = node.get("axis", 0)
    given = node.get("split") if sizes is None else [int(each) for each in numbers(sizes)]
    if given is None:
        count = node.get("num_outputs", node.results)
        part = -(-x.shape[axis] // count)
        given = [max(min(part, x.shape[axis] - part * position), 0) for position in range(count)]
    return tuple(flambeau.split(x, list(given), axis))


@reader("Slice")
def slice_(
    node: Operator, x: Tensor, starts: Tensor | None = None, ends: Tensor | None = None, axes: Tensor | None = None,
    steps: Tensor | None = None,
) -> Any:  # fmt: skip
    begin = node.get("starts") if starts is None else numbers(starts)
    end = node.get("ends") if ends is None else numbers(ends)
    dims = axes_of(node, axes) or list(range(len(begin)))
    by = [1] * len(begin) if steps is None else numbers(steps)
    for start, stop, dim, step in zip(begin, end, dims, by, strict=True):
        places = range(x.shape[dim])[slice(start, _limited(stop, x.shape[dim], step), step)]
        if step > 0:
            x = x[(slice(None),) * (dim % x.dim()) + (slice(places.start, places.stop, step),)]
        else:
            x = x.index_select(dim, flambeau.tensor(list(places), dtype=flambeau.int64))
    return x


def _limited(stop: int, size: int, step: int) -> int | None:
    """A negative step that goes on to the first element has no number for its end in Python."""
    return None if step < 0 and stop < -size else stop


def pad_by(x: Tensor, widths: Sequence[int], fill: float) -> Any:
    """The last dimensions of an image with `fill` around it; widths before, then widths after; negative ones cut."""
    rank = len(widths) // 2
    if not any(widths):
        return x
    pairs = [each for dim in reversed(range(rank)) for each in (widths[dim], widths[rank + dim])]
    return F.pad(x, pairs, value=fill)


@reader("Pad")
def pad(
    node: Operator, x: Tensor, pads: Tensor | None = None, value: Tensor | None = None, axes: Tensor | None = None
) -> Any:
    widths = node.get("pads") if pads is None else [int(each) for each in numbers(pads)]
    dims = [each % x.dim() for each in (axes_of(node, axes) or range(x.dim()))]
    fill = node.get("value", 0.0) if value is None else value.item()
    mode = node.get("mode", "constant")
    for position, dim in enumerate(dims):
        before, after = widths[position], widths[position + len(dims)]
        if before or after:
            x = _padded(x, dim, before, after, mode, fill)
    return x


def _padded(x: Tensor, dim: int, before: int, after: int, mode: str, fill: Any) -> Any:
    last = x.transpose(dim, -1)
    size = last.shape[-1]
    if mode == "constant":
        made = F.pad(last, (before, after), value=fill)
    else:
        places = flambeau.arange(-before, size + after)
        if mode == "edge":
            places = places.clamp(0, size - 1)
        elif mode == "wrap":
            places = places % size
        elif mode == "reflect":
            period = max(2 * (size - 1), 1)
            places = places % period
            places = flambeau.where(places >= size, period - places, places)
        else:
            raise NotRead(f"padding by {mode}")
        made = last.index_select(-1, places)
    return made.transpose(dim, -1)


@reader("Range")
def range_(node: Operator, start: Tensor, limit: Tensor, delta: Tensor) -> Any:
    first, last, step = start.item(), limit.item(), delta.item()
    count = max(math.ceil((last - first) / step), 0)
    return (flambeau.arange(count, dtype=start.dtype) * step + first).to(start.dtype)


@reader("EyeLike")
def eye_like(node: Operator, x: Tensor) -> Any:
    kind = node.get("dtype")
    rows, columns = x.shape
    places = flambeau.arange(columns) - flambeau.arange(rows).unsqueeze(1)
    return (places == node.get("k", 0)).to(x.dtype if kind is None else torch_type(kind))


@reader("Trilu")
def trilu(node: Operator, x: Tensor, k: Tensor | None = None) -> Any:
    diagonal = 0 if k is None else int(k.item())
    return flambeau.triu(x, diagonal) if node.get("upper", 1) else flambeau.tril(x, diagonal)


@reader("DepthToSpace")
def depth_to_space(node: Operator, x: Tensor) -> Any:
    r = node.get("blocksize")
    batch, channels, height, width = x.shape
    if node.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, r)
    apart = x.reshape(batch, r, r, channels // (r * r), height, width).permute(0, 3, 4, 1, 5, 2)
    return apart.reshape(batch, channels // (r * r), height * r, width * r)


@reader("SpaceToDepth")
def space_to_depth(node: Operator, x: Tensor) -> Any:
    r = node.get("blocksize")
    if node.get("mode", "DCR") == "CRD":
        return F.pixel_unshuffle(x, r)
    batch, channels, height, width = x.shape
    apart = x.reshape(batch, channels, height // r, r, width // r, r).permute(0, 3, 5, 1, 2, 4)
    return apart.reshape(batch, channels * r * r, height // r, width // r)


@reader("ReverseSequence")
def reverse_sequence(node: Operator, x: Tensor, lengths: Tensor) -> Any:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    steps = x.movedim((time, batch), (0, 1))
    places = flambeau.arange(steps.shape[0]).unsqueeze(1)
    turned = flambeau.where(places < lengths, lengths - 1 - places, places)
    index = turned.reshape(*turned.shape, *[1] * (steps.dim() - 2)).expand(steps.shape)
    return steps.gather(0, index).movedim((0, 1), (time, batch))


@reader("CenterCropPad")
def center_crop_pad(node: Operator, x: Tensor, wanted: Tensor) -> Any:
    dims = [each % x.dim() for each in node.get("axes", range(x.dim()))]
    for dim, size in zip(dims, numbers(wanted), strict=True):
        gap = size - x.shape[dim]
        if gap < 0:
            x = x.narrow(dim, -gap // 2, size)
        elif gap:
            x = _padded(x, dim, gap // 2, gap - gap // 2, "constant", 0)
    return x


@reader("RandomNormal", "RandomUniform")
def random(node: Operator) -> Any:
    return _drawn(node, list(node.get("shape")), torch_type(node.get("dtype", 1)))


@reader("RandomNormalLike", "RandomUniformLike")
def random_like(node: Operator, x: Tensor) -> Any:
    kind = node.get("dtype")
    return _drawn(node, list(x.shape), x.dtype if kind is None else torch_type(kind))


def _drawn(node: Operator, sizes: list[int], kind: Any) -> Any:
    if "Normal" in node.kind:
        return flambeau.randn(sizes, dtype=kind) * node.get("scale", 1.0) + node.get("mean", 0.0)
    low, high = node.get("low", 0.0), node.get("high", 1.0)
    return flambeau.rand(sizes, dtype=kind) * (high - low) + low


@reader("Multinomial")
def multinomial(node: Operator, x: Tensor) -> Any:
    drawn = flambeau.multinomial(flambeau.exp(x), node.get("sample_size", 1), replacement=True)
    return drawn.to(torch_type(node.get("dtype", 6)))
