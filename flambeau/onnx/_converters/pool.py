"""Pooling: the largest or the mean of windows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._graph import INT64, Graph, Value
from .._sizes import Size, product
from ._table import Result, Unsupported, converter


def _with_batch(g: Graph, self: Value, spatial: int) -> tuple[Value, bool]:
    """Images as ONNX wants them: with a batch and channels; whether dimensions were put in."""
    missing = spatial + 2 - self.rank
    if missing <= 0:
        return self, False
    made = g.unsqueeze(self, *range(missing))
    made.shape = (1,) * missing + tuple(self.shape or ())
    return made, True


@converter("max_pool", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(
    g: Graph, call: Result, self: Value, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool,
) -> Any:  # fmt: skip
    rank = len(kernel_size)
    images, added = _with_batch(g, self, rank)
    values, places = g.ops(
        "MaxPool", 2, images, kernel_shape=list(kernel_size), strides=list(stride or kernel_size),
        pads=[*padding, *padding], dilations=list(dilation), ceil_mode=int(ceil_mode),
    )  # fmt: skip
    places.dtype = INT64
    # ONNX counts places through the whole tensor, PyTorch in each plane.
    plane = product((self.shape or ())[-rank:])
    results = [values, g.op("Mod", places, plane)]
    if added:
        results = [g.reshape(each, call.shape) for each in results]
    return results[0] if call.op == "max_pool" else results


@converter("avg_pool2d", "avg_pool3d")
def avg_pool(
    g: Graph, call: Result, self: Value, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
) -> Value:  # fmt: skip
    images, added = _with_batch(g, self, len(kernel_size))
    pads, include = list(padding), count_include_pad or divisor_override is not None
    if include and ceil_mode and any(pads):  # runtimes disagree on what counts there: the zeros become real ones
        widths = [0, 0, *pads, 0, 0, *pads]
        images, pads = g.op("Pad", images, g.ints(widths)), [0] * len(pads)
        include = divisor_override is not None
    made = g.op(
        "AveragePool", images, kernel_shape=list(kernel_size), strides=list(stride or kernel_size), pads=[*pads, *pads],
        ceil_mode=int(ceil_mode), count_include_pad=int(include),
    )  # fmt: skip
    if divisor_override is not None:
        made = g.op("Mul", made, product(kernel_size) / divisor_override)
    return g.reshape(made, call.shape) if added else made


def _bounds(size: int, count: int) -> list[tuple[int, int]]:
    """From where to where the windows go."""
    return [(position * size // count, -(-(position + 1) * size // count)) for position in range(count)]


def _even(sizes: Sequence[int], counts: Sequence[int]) -> bool:
    return all(
        not isinstance(size, Size) and count and size % count == 0 for size, count in zip(sizes, counts, strict=True)
    )


@converter("adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(g: Graph, call: Result, self: Value, output_size: Sequence[int]) -> Value:
    rank = len(output_size)
    sizes = (self.shape or ())[-rank:]
    dims = list(range(self.rank - rank, self.rank))
    if all(each == 1 and not isinstance(each, Size) for each in output_size):
        return g.reduce("ReduceMean", self, dims, True)
    value = self
    for dim, size, count in zip(dims, sizes, output_size, strict=True):
        if isinstance(count, Size) or isinstance(size, Size):
            if isinstance(count, Size) and isinstance(size, Size) and count.runs == size.runs:
                continue
            raise Unsupported("windows whose number depends on the sizes of the inputs")
        if size != count:
            table = np.zeros((int(count), int(size)))
            for row, (start, end) in enumerate(_bounds(size, count)):
                table[row, start:end] = 1 / (end - start)
            turned = _last(g, value, dim, self.rank)
            value = _last(g, g.op("MatMul", turned, g.const(table.T.astype(self.dtype))), dim, self.rank)
    return value


def _last(g: Graph, value: Value, dim: int, rank: int) -> Value:
    """A dimension exchanged with the last one."""
    order = list(range(rank))
    order[dim], order[-1] = order[-1], order[dim]
    return g.transpose(value, order) if dim != rank - 1 else value


@converter("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(g: Graph, call: Result, self: Value, output_size: Sequence[int]) -> list[Value]:
    rank = len(output_size)
    sizes, outer = (self.shape or ())[-rank:], tuple(self.shape or ())[:-rank]
    if all(each == 1 and not isinstance(each, Size) for each in output_size):
        rows = g.reshape(self, [*outer, product(sizes)])
        place = g.op("ArgMax", rows, dtype=INT64, axis=-1, keepdims=0)
        return [g.reshape(g.reduce("ReduceMax", rows, [len(outer)], False), call.shape), g.reshape(place, call.shape)]
    if any(isinstance(each, Size) for each in (*sizes, *output_size)):
        raise Unsupported("windows whose number depends on the sizes of the inputs")
    if _even(sizes, output_size):
        window = [int(size) // int(count) for size, count in zip(sizes, output_size, strict=True)]
        again = Result("max_pool2d_with_indices", call.dtypes, call.shapes, call.transposed)
        made: list[Value] = max_pool(g, again, self, window, window, [0] * rank, [1] * rank, False)
        return made
    cells = [
        _extreme_of_window(g, self, len(outer), window)
        for window in itertools.product(*(_bounds(*each) for each in zip(sizes, output_size, strict=True)))
    ]
    return [g.reshape(g.op("Concat", *[g.unsqueeze(each, -1) for each in cells], axis=-1), call.shape)]


def _extreme_of_window(g: Graph, self: Value, outer: int, window: Sequence[tuple[int, int]]) -> Value:
    axes = list(range(outer, outer + len(window)))
    starts, ends = g.ints([start for start, _ in window]), g.ints([end for _, end in window])
    return g.reduce("ReduceMax", g.op("Slice", self, starts, ends, g.ints(axes)), axes, False)


def _unpool(spatial: int) -> Callable[..., Value]:
    def convert(g: Graph, call: Result, self: Value, indices: Value, output_size: Sequence[int]) -> Value:
        outer = tuple(self.shape or ())[: self.rank - spatial]
        cells = product((self.shape or ())[self.rank - spatial :])
        plane = product(output_size)
        zeros = g.op("ConstantOfShape", g.ints([*outer, plane]), dtype=self.dtype, value=np.zeros(1, self.dtype))
        places, values = (g.reshape(each, [*outer, cells]) for each in (g.cast(indices, INT64), self))
        return g.reshape(g.op("ScatterElements", zeros, places, values, axis=-1), call.shape)

    return convert


converter("max_unpool2d")(_unpool(2))
converter("max_unpool3d")(_unpool(3))
