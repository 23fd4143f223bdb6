"""Convolution on arrays: windows on the input, copied into a matrix block by block, and one product for each block.

There are three products, and each is the derivative of the others: `correlate` (the convolution itself),
`correlate_transposed` (the gradient of the input, and the transposed convolution) and `weight_gradient`. Arrays are
(batch, channels, *sizes), weights (outputs, inputs of one group, *kernel).

A block's matrix has a column for each output position, or a row where the channels lie innermost in memory.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import dim_moved
from ..._core.backend import is_of_host
from ..._core.geometry.layout import contiguous_array
from ..._core.geometry.moving_windows import (
    Geometry,
    Shape,
    correlated_sizes,
    new_array,
    padded_sizes,
    suggests_channels_last,
)
from ..._core.geometry.strided_windows import restrided
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._dispatch.arguments.precision import in_single
from ..linalg.products import array_dot, matrix_product

_BLOCK = 1 << 19
"""Elements of one block's matrix: what stays in a processor's cache is quicker to fill and to multiply."""


_FEW = 4
"""Positions are few if there are so many times as many output channels."""


# ----- windows ------------------------------------------------------------------------------------------------------


def _windows(padded: Any, output: Shape, kernel: Shape, geometry: Geometry) -> Any:
    """A view of (..., *output, *kernel) on padded samples (..., *sizes)."""
    outer = padded.ndim - len(kernel)
    steps = padded.strides[outer:]
    moves = [step * s for step, s in zip(steps, geometry.stride, strict=True)]
    inside = [step * d for step, d in zip(steps, geometry.dilation, strict=True)]
    shape = (*padded.shape[:outer], *output, *kernel)
    return restrided(padded, shape, (*padded.strides[:outer], *moves, *inside))


def _add_windows(padded: Any, windows: Any, kernel: Shape, geometry: Geometry) -> None:
    """Add windows (..., *output, *kernel) to where they lie on padded samples (..., *sizes)."""
    rank = len(kernel)
    for target, source in _window_keys(kernel, windows.shape[-2 * rank : -rank], geometry):
        padded[target] += windows[source]


@functools.lru_cache(maxsize=256)
def _window_keys(kernel: Shape, output: Shape, geometry: Geometry) -> list[tuple[Any, Any]]:
    """For each place in a window: the key to the samples' elements that are there in some window, and to these
    windows.
    """
    keys = []
    for place in itertools.product(*map(range, kernel)):
        spans = []
        for at, gap, step, size in zip(place, geometry.dilation, geometry.stride, output, strict=True):
            spans.append(slice(at * gap, at * gap + (size - 1) * step + 1, step))
        keys.append(((..., *spans), (..., *place)))
    return keys


def _inner(padded: Any, geometry: Geometry) -> Any:
    """The part of padded samples that is not padding."""
    sizes = padded.shape[-len(geometry.padding) :]
    return padded[(..., *[slice(p, size - p) for p, size in zip(geometry.padding, sizes, strict=True)])]


def windows_of(input: Any, kernel: Shape, geometry: Geometry) -> Any:
    """The windows (batch, channels, *output, *kernel) of an input, which is copied only to pad it."""
    output = correlated_sizes(input.shape[2:], kernel, geometry)
    if any(geometry.padding):
        padded = np.zeros((*input.shape[:2], *padded_sizes(input.shape[2:], geometry)), input.dtype, like=input)
        _inner(padded, geometry)[...] = input
        input = padded
    return _windows(input, output, kernel, geometry)


def sum_of_windows(windows: Any, sizes: Shape, geometry: Geometry) -> Any:
    """The transpose of `windows_of`: the sum of windows, each put where it lies on an array of spatial `sizes`."""
    padded = np.zeros((*windows.shape[:2], *padded_sizes(sizes, geometry)), windows.dtype, like=windows)
    _add_windows(padded, windows, windows.shape[-len(sizes) :], geometry)
    return contiguous_array(_inner(padded, geometry))


# ----- blocks -------------------------------------------------------------------------------------------------------


_ALL = slice(None)


class _Plan:
    """How one convolution is cut into blocks: of samples or, where one sample is too much, of its first output rows."""

    def __init__(self, input_shape: Shape, output: Shape, kernel: Shape, geometry: Geometry, rows: bool) -> None:
        self.kernel, self.geometry, self.output, self.rows = kernel, geometry, output, rows
        self.groups = geometry.groups
        self.channels = input_shape[1] // self.groups
        self.depth = self.channels * math.prod(kernel)
        self.padded = padded_sizes(input_shape[2:], geometry)
        sample = max(input_shape[1] * math.prod(kernel) * math.prod(output), 1)
        self.samples = min(max(_BLOCK // sample, 1), input_shape[0])
        self.height = max(_BLOCK * output[0] // sample, 1) if sample > 4 * _BLOCK else max(output[0], 1)
        self.pointwise = set(kernel) == {1} and set(geometry.stride) == {1} and not any(geometry.padding)
        if self.pointwise and math.prod(output) >= 64:
            self.samples, self.height = 1, output[0]  # a sample is its own matrix: nothing is copied
        self.window_shape = (self.groups, self.channels, *output, *kernel)
        self.order = self._order()
        self.order_back = tuple(map(int, np.argsort(self.order)))
        self.is_whole = self.samples >= input_shape[0] and self.height >= output[0]

    def batches(self, count: int) -> Iterator[slice]:
        """The samples of each block."""
        for start in range(0, count, self.samples):
            yield slice(start, min(start + self.samples, count))

    def strips(self) -> Iterator[slice]:
        """The output rows of each block."""
        for start in range(0, self.output[0], self.height):
            yield slice(start, min(start + self.height, self.output[0]))

    def windows(self, padded: Any) -> Any:
        """A view of (batch, groups, channels of a group, *output, *kernel)."""
        shape = (len(padded), *self.window_shape)
        return restrided(padded, shape, _window_strides(padded.strides, self.channels, self.geometry))

    def grouped(self, padded: Any) -> Any:
        """A view of (batch, groups, channels of a group, *sizes)."""
        batch, channel, *steps = padded.strides
        channels = padded.shape[1] // self.groups
        shape = (len(padded), self.groups, channels, *padded.shape[2:])
        return restrided(padded, shape, (batch, channel * channels, channel, *steps))

    def _order(self) -> Shape:
        """The dimensions of `windows` in the order of the block's matrix, groups first."""
        rank = len(self.kernel)
        output, kernel = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
        return (1, 0, *output, *kernel, 2) if self.rows else (1, 2, *kernel, 0, *output)

    def windows_back(self, matrices: Any, count: int, height: int) -> Any:
        """A block's matrices as windows: (batch, groups, channels of a group, *output, *kernel)."""
        shape = (count, self.groups, self.channels, height, *self.output[1:], *self.kernel)
        return matrices.reshape([shape[dim] for dim in self.order]).transpose(self.order_back)

    def matrix_shape(self, positions: int) -> Shape:
        """The shape of the matrices, one for each group, of so many output positions."""
        return (self.groups, positions, self.depth) if self.rows else (self.groups, self.depth, positions)

    def weights(self, weight: Any) -> Any:
        """The weight as matrices, one for each group: (outputs, depth), with the depth in the order of the block's."""
        outputs = weight.shape[0] // self.groups
        grouped = weight.reshape(self.groups, outputs, self.channels, *self.kernel)
        if self.rows:
            grouped = dim_moved(grouped, 2, -1)
        return grouped.reshape(self.groups, outputs, self.depth)

    def weights_back(self, matrices: Any) -> Any:
        """The weight in its own shape, from the matrices that `weights` makes of it."""
        outputs = matrices.shape[1]
        if self.rows:
            grouped = dim_moved(matrices.reshape(self.groups, outputs, *self.kernel, self.channels), -1, 2)
        else:
            grouped = matrices.reshape(self.groups, outputs, self.channels, *self.kernel)
        return grouped.reshape(self.groups * outputs, self.channels, *self.kernel)

    def positions_of(self, array: Any) -> Any:
        """An output's block (batch, outputs, *sizes) as matrices, one for each group, with its positions as the block
        has them. A copy where the memory does not lie like that.
        """
        count, outputs, *sizes = array.shape
        grouped = array.reshape(count, self.groups, outputs // self.groups, *sizes)
        spatial = range(3, grouped.ndim)
        if self.rows:
            return grouped.transpose(1, 0, *spatial, 2).reshape(self.groups, -1, outputs // self.groups)
        return grouped.transpose(1, 2, 0, *spatial).reshape(self.groups, outputs // self.groups, -1)

    def store_positions(self, target: Any, matrices: Any) -> None:
        """Write matrices, as `positions_of` makes them, into an output's block."""
        count, outputs, *sizes = target.shape
        inner = outputs // self.groups
        rank = len(sizes)
        if self.rows:
            found = matrices.reshape(self.groups, count, *sizes, inner)
            target[...] = found.transpose(1, 0, 2 + rank, *range(2, 2 + rank)).reshape(target.shape)
        else:
            found = matrices.reshape(self.groups, inner, count, *sizes)
            target[...] = found.transpose(2, 0, 1, *range(3, 3 + rank)).reshape(target.shape)

    def padding_buffer(self, count: int, source: Any) -> Any:
        """Zeros for the padded samples of one block, in the memory order of the matrices."""
        shape = (min(count, self.samples), self.groups * self.channels, *self.padded)
        buffer = new_array(shape, source.dtype, self.rows, source)
        buffer.fill(0)
        return buffer


@functools.lru_cache(maxsize=256)
def _window_strides(strides: Shape, channels: int, geometry: Geometry) -> Shape:
    """The strides of windows, with the channels in groups of so many."""
    batch, channel, *steps = strides
    moves = [step * s for step, s in zip(steps, geometry.stride, strict=True)]
    inside = [step * d for step, d in zip(steps, geometry.dilation, strict=True)]
    return (batch, channel * channels, channel, *moves, *inside)


@functools.lru_cache(maxsize=256)
def _plan(input_shape: Shape, output: Shape, kernel: Shape, geometry: Geometry, rows: bool) -> _Plan:
    """The plan of a convolution; networks repeat their shapes."""
    return _Plan(input_shape, output, kernel, geometry, rows)


def _blocks(input: Any, plan: _Plan) -> Iterator[tuple[slice, slice, Any]]:
    """For each block its samples, its output rows, and its windows as matrices."""
    buffer = plan.padding_buffer(len(input), input) if any(plan.geometry.padding) else None
    columns = None
    order = plan.order
    for batch in plan.batches(len(input)):
        padded = input[batch]
        if buffer is not None:
            _inner(buffer[: len(padded)], plan.geometry)[...] = padded
            padded = buffer[: len(padded)]
        windows = plan.windows(padded)
        if plan.is_whole:
            yield batch, _ALL, windows.transpose(order).reshape(plan.matrix_shape(-1))
            return
        for strip in plan.strips():
            block = windows[:, :, :, strip].transpose(order)
            shape = plan.matrix_shape(block.size // (plan.groups * plan.depth))
            if plan.pointwise:
                yield batch, strip, block.reshape(shape)
                continue
            if columns is None:
                columns = np.empty(block.size, input.dtype, like=input)
            matrices = columns[: block.size]
            matrices.reshape(block.shape)[...] = block
            yield batch, strip, matrices.reshape(shape)


def _by_rows(array: Any, channels: int, groups: int) -> bool:
    """Whether output positions should be the rows of the matrices: if channels, and not too few, lie innermost."""
    return groups == 1 and min(array.shape[1], channels) >= 8 and suggests_channels_last(array)


# ----- taps that meet nothing but padding ---------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _met(sizes: Shape, output: Shape, kernel: Shape, geometry: Geometry) -> tuple[tuple[Any, ...], Geometry] | None:
    """Which part of a kernel meets elements of an image of spatial `sizes`, as a key, and how that part moves over it.

    In deep layers images are smaller than kernels: of 3x3 weights that move over 1x1 with padding, one counts. None:
    all of them do, or the others cannot be left out.
    """
    keys, padding = [], []
    entries = zip(sizes, output, kernel, *geometry[:3], strict=True)
    for size, count, taps, step, pad, gap in entries:
        met = []
        for tap in range(taps):
            away = pad - tap * gap  # at position p it meets the element p * step - away
            if max(-(-away // step), 0) <= min((size - 1 + away) // step, count - 1):
                met.append(tap)
        if not met:
            return None
        keys.append(slice(met[0], met[-1] + 1))
        padding.append(pad - met[0] * gap)
    part = tuple([key.stop - key.start for key in keys])
    moved = geometry._replace(padding=tuple(padding))
    if part == kernel or min(padding) < 0 or correlated_sizes(sizes, part, moved) != output:
        return None
    return (slice(None), slice(None), *keys), moved


# ----- images of one element ----------------------------------------------------------------------------------------


def _are_rows(input: Any, weight_shape: Shape, output: Shape, geometry: Geometry, last: bool) -> bool:
    """Whether images and kernels have one element each, as behind a mean over planes: then samples are matrix rows.

    A product of matrices is several times as quick as a convolution that is made ready for images, and with many
    threads a hundred times.
    """
    if geometry.groups != 1 or last or input.dtype.char != "f" or not is_of_host(type(input)):
        return False
    if REPRODUCIBILITY.product is not None or any(geometry.padding):
        return False
    return {*input.shape[2:], *weight_shape[2:], *output} == {1}


# ----- the three products -------------------------------------------------------------------------------------------


def correlate(input: Any, weight: Any, bias: Any, output: Shape, geometry: Geometry, last: bool) -> Any:
    """The convolution of `input` with `weight`, of which the first `output` positions are wanted, plus `bias`.

    The result has its channels innermost if `last`.
    """
    shape = (input.shape[0], weight.shape[0], *output)
    if 0 in shape or not weight.size:
        result = new_array(shape, input.dtype, last, input)
        result.fill(0)
        return _with_bias(result, bias)
    if is_of_host(type(input)) and (met := _met(input.shape[2:], output, weight.shape[2:], geometry)) is not None:
        weight, geometry = weight[met[0]], met[1]
    if weight.dtype == input.dtype and _are_rows(input, weight.shape, output, geometry, last):
        rows = array_dot(input.reshape(shape[0], -1), weight.reshape(shape[1], -1).T)
        return _with_bias(rows.reshape(shape), bias)
    done = arrays.correlate(input, weight, bias, output, geometry, last)
    if done is not None:
        return done
    return _correlate_blocks(input, weight, bias, output, geometry, last)


@in_single
def _correlate_blocks(input: Any, weight: Any, bias: Any, output: Shape, geometry: Geometry, last: bool) -> Any:
    kernel = weight.shape[2:]
    shape = (input.shape[0], weight.shape[0], *output)
    plan = _plan(input.shape, output, kernel, geometry, _by_rows(input, input.shape[1], geometry.groups))
    matrices = plan.weights(weight)
    if shape[0] == 1 and plan.is_whole and not (plan.rows or last):  # the product lies in memory as the result does
        ((_, _, block),) = _blocks(input, plan)
        return _with_bias(arrays.matmul(matrices, block).reshape(shape), bias)
    result = new_array(shape, input.dtype, last, input)
    transposed = matrices.transpose(0, 2, 1)
    for batch, strip, block in _blocks(input, plan):
        found = arrays.matmul(block, transposed) if plan.rows else arrays.matmul(matrices, block)
        plan.store_positions(result[batch, :, strip], found)
    return _with_bias(result, bias)


def correlate_transposed(grad: Any, weight: Any, bias: Any, sizes: Shape, geometry: Geometry, last: bool) -> Any:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    channels = weight.shape[1] * geometry.groups
    shape = (grad.shape[0], channels, *sizes)
    if not (grad.size and weight.size and 0 not in shape):
        result = new_array(shape, grad.dtype, last, grad)
        result.fill(0)
        return _with_bias(result, bias)
    if is_of_host(type(grad)) and (met := _met(sizes, grad.shape[2:], weight.shape[2:], geometry)) is not None:
        weight, geometry = weight[met[0]], met[1]
    if weight.dtype == grad.dtype and _are_rows(grad, weight.shape, sizes, geometry, last):
        rows = array_dot(grad.reshape(shape[0], -1), weight.reshape(weight.shape[0], -1))
        return _with_bias(rows.reshape(shape), bias)
    done = arrays.correlate_transposed(grad, weight, bias, sizes, geometry, last)
    if done is not None:
        return done
    return _transposed_blocks(grad, weight, bias, sizes, geometry, last)


@in_single
def _transposed_blocks(grad: Any, weight: Any, bias: Any, sizes: Shape, geometry: Geometry, last: bool) -> Any:
    kernel = weight.shape[2:]
    channels = weight.shape[1] * geometry.groups
    shape = (grad.shape[0], channels, *sizes)
    plan = _plan(shape, grad.shape[2:], kernel, geometry, _by_rows(grad, channels, geometry.groups))
    matrices = plan.weights(weight)
    transposed = matrices.transpose(0, 2, 1)
    buffer = plan.padding_buffer(len(grad), grad)
    in_place = plan.is_whole and not any(geometry.padding) and plan.rows is last
    result = buffer if in_place else new_array(shape, grad.dtype, last, grad)
    for batch in plan.batches(len(grad)):
        padded = buffer[: batch.stop - batch.start]
        if batch.start:
            padded.fill(0)
        for strip in plan.strips():
            values = plan.positions_of(grad[batch, :, strip])
            block = arrays.matmul(values, matrices) if plan.rows else arrays.matmul(transposed, values)
            top = strip.start * geometry.stride[0]
            windows = plan.windows_back(block, len(padded), strip.stop - strip.start)
            _add_windows(plan.grouped(padded)[:, :, :, top:], windows, kernel, geometry)
        if not in_place:
            result[batch] = _inner(padded, geometry)
    return _with_bias(result, bias)


def weight_gradient(input: Any, grad: Any, kernel: Shape, geometry: Geometry, last: bool) -> Any:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    outputs, channels = grad.shape[1], input.shape[1] // geometry.groups
    if not (input.size and grad.size):
        result = new_array((outputs, channels, *kernel), input.dtype, last, input)
        result.fill(0)
        return result
    if is_of_host(type(input)) and (met := _met(input.shape[2:], grad.shape[2:], kernel, geometry)) is not None:
        part = tuple([key.stop - key.start for key in met[0][2:]])
        found = weight_gradient(input, grad, part, met[1], last)
        result = new_array((outputs, channels, *kernel), input.dtype, last, input)
        result.fill(0)
        np.copyto(result[met[0]], found)
        return result
    weight_shape = (outputs, channels, *kernel)
    if grad.dtype == input.dtype and _are_rows(input, weight_shape, grad.shape[2:], geometry, last):
        return array_dot(grad.reshape(-1, outputs).T, input.reshape(-1, channels)).reshape(weight_shape)
    if _is_product_of_samples(input, grad, geometry):
        return _weigh_samples(input, grad, kernel, geometry, last)
    done = arrays.weight_gradient(input, grad, kernel, geometry, last)
    if done is not None:
        return done
    return _weigh_blocks(input, grad, kernel, geometry, last)


def _is_product_of_samples(input: Any, grad: Any, geometry: Geometry) -> bool:
    """Whether a tree over samples is quicker as one product, which keeps its subtrees in the cache tile by tile.

    The sizes of one sample decide. Where it has few positions, its gradient takes longer to write and to add than to
    compute.
    """
    if REPRODUCIBILITY.samples is None or type(input) is not np.ndarray or geometry.groups != 1:
        return False
    is_wide: bool = _FEW * math.prod(grad.shape[2:]) <= grad.shape[1]
    return is_wide and input.dtype == grad.dtype and input.dtype.kind == "f"


def _weigh_samples(input: Any, grad: Any, kernel: Shape, geometry: Geometry, last: bool) -> Any:
    samples, outputs, *output = grad.shape
    windows = windows_of(input, kernel, geometry)[(..., *[slice(count) for count in output], *[_ALL] * len(kernel))]
    rank = len(kernel)
    unfolded = windows.transpose(0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
    positions = math.prod(output)
    left = dim_moved(grad.reshape(samples, outputs, positions), 1, 2)
    found = REPRODUCIBILITY.samples.samples_product(left, unfolded.reshape(samples, positions, -1))
    result = found.reshape(outputs, input.shape[1], *kernel)
    if not last:
        return result
    arranged = new_array(result.shape, result.dtype, last, result)
    arranged[...] = result
    return arranged


def _weigh(input: Any, grad: Any, plan: _Plan) -> Any:
    total: Any = None
    for batch, strip, block in _blocks(input, plan):
        values = plan.positions_of(grad[batch, :, strip])
        rows, columns = (values.transpose(0, 2, 1), block) if plan.rows else (values, block.transpose(0, 2, 1))
        found = matrix_product(rows, columns)
        total = found if total is None else np.add(total, found, total)
    return total


@in_single
def _weigh_blocks(input: Any, grad: Any, kernel: Shape, geometry: Geometry, last: bool) -> Any:
    outputs, channels = grad.shape[1], input.shape[1] // geometry.groups
    by_samples = REPRODUCIBILITY.samples is not None and type(input) is np.ndarray and len(input) > 1
    shape = (1, *input.shape[1:]) if by_samples else input.shape
    plan = _plan(shape, grad.shape[2:], kernel, geometry, _by_rows(input, input.shape[1], geometry.groups))
    if by_samples:
        total = REPRODUCIBILITY.samples.samples_total(
            len(input), lambda sample: _weigh(input[sample : sample + 1], grad[sample : sample + 1], plan)
        )
    else:
        total = _weigh(input, grad, plan)
    found = plan.weights_back(total)
    if not last and found.flags.c_contiguous:
        return found
    result = new_array((outputs, channels, *kernel), input.dtype, last, input)
    result[...] = found
    return result


def _with_bias(result: Any, bias: Any) -> Any:
    if bias is not None and result.size:
        result += bias.reshape((-1, *(1,) * (result.ndim - 2)))
    return result
