"""Ops that arrange elements: views, joining, splitting, repeating, padding by a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._graph import INT64, Graph, Value
from .._sizes import Size, product
from ._table import Result, Unsupported, converter


@converter("view", "reshape_alias", "unsafe_view", "view_copy")
def view(g: Graph, call: Result, self: Value, size: Sequence[int]) -> Value:
    return g.reshape(self, call.shape)


@converter("expand", "expand_copy")
def expand(g: Graph, call: Result, self: Value, size: Sequence[int]) -> Value:
    given = (1,) * (len(call.shape) - self.rank) + tuple(self.shape or ())
    # A dimension that stays as it is need not be known.
    wanted = [
        1 if isinstance(new, Size) and isinstance(old, Size) and new.runs == old.runs else new
        for new, old in zip(call.shape, given, strict=True)
    ]
    return g.expand(self, wanted)


@converter("permute", "permute_copy")
def permute(g: Graph, call: Result, self: Value, dims: Sequence[int]) -> Value:
    return g.transpose(self, [each % self.rank for each in dims]) if self.rank else g.op("Identity", self)


@converter("transpose", "transpose_", "transpose_copy")
def transpose(g: Graph, call: Result, self: Value, dim0: int, dim1: int) -> Value:
    order = list(range(self.rank))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.transpose(self, order) if order else g.op("Identity", self)


@converter("t", "t_", "t_copy")
def t(g: Graph, call: Result, self: Value) -> Value:
    return g.transpose(self, [1, 0]) if self.rank == 2 else g.op("Identity", self)


@converter("unsqueeze", "unsqueeze_", "unsqueeze_copy")
def unsqueeze(g: Graph, call: Result, self: Value, dim: int) -> Value:
    return g.unsqueeze(self, dim)


@converter("squeeze_all", "squeeze_all_", "squeeze_copy", "squeeze_dim", "squeeze_dim_", "squeeze_dim_copy",
           "squeeze_dims", "squeeze_dims_", "squeeze_dims_copy")  # fmt: skip
def squeeze(g: Graph, call: Result, self: Value, *dims: Any) -> Value:
    return g.reshape(self, call.shape)


@converter("select", "select_copy")
def select(g: Graph, call: Result, self: Value, dim: int, index: int) -> Value:
    return g.op("Gather", self, g.scalar(index), axis=dim)


@converter("slice", "slice_copy")
def slice_(g: Graph, call: Result, self: Value, dim: int, start: int, end: int, step: int) -> Value:
    assert self.shape is not None
    size = self.shape[dim]
    if isinstance(end, Size) and isinstance(size, Size) and end.runs == size.runs:
        end = np.iinfo(np.int64).max  # up to the end, whatever that is
    elif isinstance(start, Size) and isinstance(size, Size) and step == 1:
        start, end = _from_the_end(start, size), _from_the_end(end, size)
    return g.slice(self, dim, start, end, step)


def _from_the_end(place: int, size: Size) -> int:
    """A place as it is counted from the end, if that is a constant."""
    gap = place - size
    if isinstance(gap, Size) and len(set(gap.runs)) == 1 and gap.runs[0] < 0:
        return gap.runs[0]
    return place


@converter("narrow_copy")
def narrow(g: Graph, call: Result, self: Value, dim: int, start: int, length: int) -> Value:
    return g.slice(self, dim, start, start + length)


@converter("unbind", "unbind_copy")
def unbind(g: Graph, call: Result, self: Value, dim: int) -> list[Value]:
    return [g.op("Gather", self, g.scalar(position), axis=dim) for position in range(len(call.shapes))]


@converter("split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "unsafe_split",
           "unsafe_split_with_sizes")  # fmt: skip
def split(g: Graph, call: Result, self: Value, sizes: Any, dim: int) -> list[Value]:
    parts = [shape[dim] for shape in call.shapes]
    if len(parts) == 1:
        return [g.op("Identity", self)]
    return g.ops("Split", len(parts), self, g.ints(parts), axis=dim)


@converter("diagonal", "diagonal_copy")
def diagonal(g: Graph, call: Result, self: Value, offset: int, dim1: int, dim2: int) -> Value:
    rank = self.rank
    first, second = dim1 % rank, dim2 % rank
    rest = [each for each in range(rank) if each not in (first, second)]
    matrix = g.transpose(self, [*rest, first, second])
    assert self.shape is not None
    rows, columns = self.shape[first], self.shape[second]
    length = call.shape[-1]
    steps = g.count_up(length)
    down = g.op("Mul", g.op("Add", steps, max(-offset, 0)), columns)
    places = g.op("Add", g.op("Add", down, steps), max(offset, 0))
    flat = g.reshape(matrix, [*(self.shape[each] for each in rest), rows * columns])
    return g.op("Gather", flat, places, axis=len(rest))


@converter("diag_embed")
def diag_embed(g: Graph, call: Result, self: Value, offset: int, dim1: int, dim2: int) -> Value:
    rank = len(call.shape)
    first, second = dim1 % rank, dim2 % rank
    size = call.shape[first]
    before, after = max(offset, 0), max(-offset, 0)
    rows, columns = g.count_up(size), g.count_up(size)
    on = g.op("Equal", g.op("Sub", columns, g.unsqueeze(rows, 1)), offset, dtype=bool)
    # Element i stands in row i + after and column i + before.
    pads = g.ints([*[0] * (self.rank - 1), before, *[0] * (self.rank - 1), after])
    line = g.op("Pad", g.cast(self, np.float32) if self.dtype == bool else self, pads)
    wide = g.where(on, g.unsqueeze(g.cast(line, self.dtype), -2), g.const(0, self.dtype))
    order = [each for each in range(rank) if each not in (first, second)]
    back = [0] * rank
    for position, each in enumerate([*order, first, second]):
        back[each] = position
    return g.transpose(wide, back)


@converter("unfold", "unfold_copy")
def unfold(g: Graph, call: Result, self: Value, dimension: int, size: int, step: int) -> Value:
    if not self.rank:
        return g.reshape(self, [size])
    count = call.shape[dimension]
    starts = g.op("Mul", g.count_up(count), step)
    places = g.op("Add", g.unsqueeze(starts, 1), g.count_up(size))
    taken = g.op("Gather", self, places, axis=dimension)
    order = [each for each in range(self.rank + 1) if each != dimension + 1]
    return g.transpose(taken, [*order, dimension + 1])


@converter("as_strided", "as_strided_", "as_strided_copy")
def as_strided(
    g: Graph, call: Result, self: Value, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Value:
    places = g.const(np.array(storage_offset or 0, np.int64))
    for position, (count, step) in enumerate(zip(size, stride, strict=True)):
        line = g.op("Mul", g.count_up(count), step)
        after = len(size) - position - 1
        places = g.op("Add", places, g.unsqueeze(line, *range(1, after + 1)) if after else line)
    return g.op("Gather", g.flat(self), places, axis=0)


# ----- joining and repeating ------------------------------------------------------------------------------------------


@converter("cat")
def cat(g: Graph, call: Result, tensors: list[Value], dim: int, dtype: Any) -> Value:
    kept = [each for each in tensors if each.shape != (0,)] or tensors[:1]
    return g.op("Concat", *[g.cast(each, call.dtype) for each in kept], axis=dim)


@converter("stack")
def stack(g: Graph, call: Result, tensors: list[Value], dim: int, dtype: Any) -> Value:
    return g.op("Concat", *[g.unsqueeze(g.cast(each, call.dtype), dim) for each in tensors], axis=dim)


@converter("repeat")
def repeat(g: Graph, call: Result, self: Value, repeats: Sequence[int]) -> Value:
    before = len(repeats) - self.rank
    value = g.unsqueeze(self, *range(before)) if before else self
    return g.op("Tile", value, g.ints(repeats)) if repeats else g.op("Identity", self)


@converter("flip")
def flip(g: Graph, call: Result, self: Value, dims: Sequence[int]) -> Value:
    if not len(dims) or not self.rank:
        return g.op("Identity", self)
    count, last = len(dims), np.iinfo(np.int64).min
    return g.op("Slice", self, g.ints([-1] * count), g.ints([last] * count), g.ints(list(dims)), g.ints([-1] * count))


@converter("roll")
def roll(g: Graph, call: Result, self: Value, shifts: Sequence[int], dims: Sequence[int]) -> Value:
    whole = not len(dims)
    value = g.flat(self) if whole else self
    for shift, dim in zip(shifts, [0] if whole else dims, strict=True):
        size = product(self.shape or ()) if whole else (self.shape or ())[dim]
        if isinstance(size, Size):
            first = -shift  # counted from the end, or from the start if the shift is backwards
        else:
            first = -(shift % size) if size else 0
        if first:
            end = np.iinfo(np.int64).max
            value = g.op("Concat", g.slice(value, dim, first, end), g.slice(value, dim, 0, first), axis=dim)
    return g.reshape(value, call.shape) if whole else value


@converter("rot90")
def rot90(g: Graph, call: Result, self: Value, k: int, dims: Sequence[int]) -> Value:
    first, second = (each % self.rank for each in dims)
    order = list(range(self.rank))
    order[first], order[second] = second, first
    if k % 4 == 1:
        return g.transpose(flip(g, call, self, [second]), order)
    if k % 4 == 2:
        return flip(g, call, self, [first, second])
    return flip(g, call, g.transpose(self, order), [second]) if k % 4 == 3 else g.op("Identity", self)


@converter("constant_pad_nd")
def constant_pad(g: Graph, call: Result, self: Value, pad: Sequence[int], value: Any) -> Value:
    return padded(g, self, pad, "constant", value)


def padded(g: Graph, self: Value, pad: Sequence[int], mode: str, value: Any = None) -> Value:
    """PyTorch's pairs of widths, last dimension first, as ONNX's."""
    count = len(pad) // 2
    if not count:
        return g.op("Identity", self)
    axes = [self.rank - 1 - position for position in range(count)]
    widths = [*pad[0::2], *pad[1::2]]
    wide = g.cast(self, np.int32) if self.dtype == bool else self
    fill = None if value is None else g.const(value, wide.dtype)
    return g.cast(g.op("Pad", wide, g.ints(widths), fill, g.ints(axes), mode=mode), self.dtype)


@converter("tril", "triu")
def trilu(g: Graph, call: Result, self: Value, diagonal: int) -> Value:
    return g.op("Trilu", self, g.scalar(diagonal), upper=int(call.op == "triu"))


@converter("block_diag")
def block_diag(g: Graph, call: Result, tensors: list[Value], dtype: Any) -> Value:
    rows = []
    done, width = 0, call.shape[1]
    for each in tensors:
        matrix = each if each.rank == 2 else g.reshape(each, [1] * (2 - each.rank) + list(each.shape or ()))
        columns = (each.shape or (1,))[-1] if each.rank else 1
        pads = g.ints([0, done, 0, width - done - columns])
        rows.append(g.op("Pad", g.cast(matrix, call.dtype), pads))
        done = done + columns
    return g.op("Concat", *rows, axis=0)


@converter("pixel_shuffle")
def pixel_shuffle(g: Graph, call: Result, self: Value, upscale_factor: int) -> Value:
    if self.rank == 4:
        return g.op("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")
    *batch, channels, height, width = self.shape or ()
    r, outer = upscale_factor, len(self.shape or ()) - 3
    apart = g.reshape(self, [*batch, channels // (r * r), r, r, height, width])
    order = [*range(outer), outer, outer + 3, outer + 1, outer + 4, outer + 2]
    return g.reshape(g.transpose(apart, order), call.shape)


@converter("pixel_unshuffle")
def pixel_unshuffle(g: Graph, call: Result, self: Value, downscale_factor: int) -> Value:
    *batch, channels, height, width = self.shape or ()
    r, outer = downscale_factor, len(self.shape or ()) - 3
    apart = g.reshape(self, [*batch, channels, height // r, r, width // r, r])
    order = [*range(outer), outer, outer + 2, outer + 4, outer + 1, outer + 3]
    return g.reshape(g.transpose(apart, order), call.shape)


@converter("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(g: Graph, call: Result, self: Value, groups: int) -> Value:
    batch, channels, *rest = self.shape or ()
    apart = g.reshape(self, [batch, groups, channels // groups, *rest])
    return g.reshape(g.transpose(apart, [0, 2, 1, *range(3, 3 + len(rest))]), call.shape)


@converter("view_as_real", "view_as_complex", "complex", "polar")
def complex_numbers(g: Graph, call: Result, *args: Any) -> Value:
    raise Unsupported("ONNX's runtimes do not compute with complex numbers: keep real and imaginary parts apart")


@converter("view_dtype")
def view_dtype(g: Graph, call: Result, self: Value, dtype: Any) -> Value:
    raise Unsupported("ONNX has no operator that reads the bytes of numbers as numbers of another dtype")


@converter("repeat_interleave")
def repeat_interleave(g: Graph, call: Result, repeats: Value, output_size: int | None) -> Value:
    """Position i as often as `repeats[i]` says: how many of the running sums a place has passed."""
    sums = g.op("CumSum", g.cast(repeats, INT64), g.const(0, INT64))
    total = g.reduce("ReduceSum", g.cast(repeats, INT64), None, False)
    places = g.op("Range", g.const(0, INT64), total, g.const(1, INT64))
    passed = g.op("GreaterOrEqual", g.unsqueeze(places, 1), sums, dtype=bool)
    return g.reduce("ReduceSum", g.cast(passed, INT64), [1], False)
