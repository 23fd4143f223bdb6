"""Generated convolutions: each is one product of matrices, of which one is an image that is never unfolded.

The three functions have the names and arguments of those in `_ops/nn/conv_kernels.py`. They return None for what they
do not know. Networks repeat their shapes: all that depends on shapes alone is worked out once.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.conv import Layout, channels_innermost_copy
from ...._codegen.ir import COMPILES
from ...._codegen.products.gemm import as_array, tile_for
from ...._core.arrays.quick import dim_moved
from ...._core.geometry.moving_windows import Geometry, Shape, new_array, strides_for
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..elementwise.copy import contiguous, copy_into
from ..linalg.gemm import Product, plan
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import float_name
from . import winograd, winograd_gradient
from .depthwise import NarrowPlanes, Planes, TapPlan, convolving, fits, planes, rows_are_vectors, tap_sums
from .images import (
    Image,
    Patches,
    channels_innermost,
    cuts,
    grid,
    in_place,
    planar,
    positions,
    residues,
    space_of,
    steps_of,
    taken_together,
    windows,
    without_gaps,
)
from .winograd import Tiles
from .winograd_gradient import GradientPlan, gradient_plan

_AT_ONCE = 256
"""The most depths of a weight's gradient that are written to where they belong, and not first to a dense matrix."""

_NOT_WRITTEN = "a kernel whose result is looked at before it counts, or one that takes no workspace"


def _common_type(*arrays: Any) -> str | None:
    """The name of the dtype of all arrays, if generated code knows it."""
    first = arrays[0].dtype
    if any(each is not None and each.dtype != first for each in arrays):
        return None
    return float_name(arrays[0])


def _computed_in(dtype: str) -> str:
    """The dtype of the sums: 16 bits are too few."""
    return "float64" if dtype == "float64" else "float32"


def _rounded(result: Any, array_type: Any, last: bool) -> Any:
    """The result in the dtype of the operands."""
    if result.dtype == array_type:
        return result
    rounded = new_array(result.shape, array_type, last, result)
    if not copy_into(rounded, result):
        rounded[...] = result
    return rounded


class _Way(NamedTuple):
    """How a convolution is computed."""

    by_tiles: bool
    """Whether to try tiles, which few images are not worth, and which an element that is not finite spoils."""
    chained: bool
    """Whether each element is one chain of fused multiplications and additions, as on any other processor."""


def _may_loop(chained: bool) -> bool:
    """Whether kernels for one channel may take the place of a product, whose bits they have if both are `chained`.

    Where NumPy runs the kernels it runs the product alone.
    """
    return COMPILES or not chained


def _ways() -> tuple[_Way, ...]:
    """The ways to try, one after the other."""
    plain = _Way(False, REPRODUCIBILITY.machine)
    return (_Way(True, False), plain) if REPRODUCIBILITY.product is None else (plain,)


def _spatial(steps: Shape) -> Shape:
    """The steps of a result's spatial dimensions, of three."""
    return (*(0,) * (5 - len(steps)), *steps[2:])


def _new(shape: Shape, dtype: Any, last: bool, workspace: Workspace) -> Any:
    """New memory for a result."""
    return workspace.arranged(shape, strides_for(shape, last), dtype) if last else workspace.empty(shape, dtype)


def _written(
    work: Product | Planes | NarrowPlanes | Tiles,
    result: Any,
    weight: Any,
    source: Any,
    bias: Any,
    last: bool,
    workspace: Workspace = DIRECT,
) -> bool:
    """Let `work` write `result`; whether it could. All but products write planes, which are then put in order."""
    if isinstance(work, Product):
        return work.run(result, weight, source, bias, workspace)
    if workspace is not DIRECT:
        raise NotImplementedError(_NOT_WRITTEN)
    if not last:
        return work.run(result, weight, source, bias)
    planes_first = np.empty(result.shape, result.dtype)
    if not work.run(planes_first, weight, source, bias):
        return False
    name = float_name(result)
    channels_innermost_copy(name, name)(result, planes_first, _innermost(result.shape))
    return True


@functools.lru_cache(maxsize=256)
def _innermost(shape: Shape) -> Any:
    """The layout that puts the channels of contiguous images innermost."""
    batch, channels, *sizes = shape
    size = math.prod(sizes)
    layout = Layout._make((batch, channels, 1, 1, size, channels * size, size, size, size, 1, 0, 0, 0, 1, 1, size, 1))
    return as_array(layout)


# ----- the convolution ----------------------------------------------------------------------------------------------


class _Correlation(NamedTuple):
    image: Image | Patches
    work: Product | Planes | NarrowPlanes | Tiles


def correlate(
    input: Any, weight: Any, bias: Any, output: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The convolution of `input` with `weight`, of which the first `output` positions are wanted, plus `bias`."""
    dtype = _common_type(input, weight, bias)
    if dtype is None:
        return None
    input, geometry = without_gaps(input, weight.shape[2:], output, geometry)
    steps, weight_steps = steps_of(input), steps_of(weight)
    if steps is None or weight_steps is None:
        return None
    computed = _computed_in(dtype)
    result = _new((input.shape[0], weight.shape[0], *output), np.dtype(computed), last, workspace)
    for way in _ways():
        made = _correlation(dtype, input.shape, steps, weight.shape, weight_steps, output, geometry, last, way)
        if _written(made.work, result, weight, made.image.read(input, computed, workspace), bias, last, workspace):
            break
    return _rounded(result, input.dtype, last)


@functools.lru_cache(maxsize=256)
def _correlation(
    dtype: str,
    shape: Shape,
    steps: Shape,
    weight_shape: Shape,
    weight_steps: Shape,
    output: Shape,
    geometry: Geometry,
    last: bool,
    way: _Way,
) -> _Correlation:
    by_tiles, chained = way
    batch, groups, computed = shape[0], geometry.groups, _computed_in(dtype)
    channels, rows = weight_shape[1], weight_shape[0] // groups
    result_steps = strides_for((batch, weight_shape[0], *output), last)
    if by_tiles and winograd.fits(computed, weight_shape[2:], geometry, channels, rows, batch, output):
        taps, planes_first = (*weight_steps[:2], *weight_steps[3:]), strides_for((batch, rows, *output), False)
        return _Correlation(*winograd.tiles(shape, steps, output, geometry.padding, planes_first, rows, 0, taps))
    space = space_of(shape[2:], output, weight_shape[2:], geometry)
    count = math.prod(output)
    together, times = taken_together(batch, count)
    image, taps = windows(shape, steps, space, together, dtype == computed)
    if _may_loop(chained) and fits(computed, channels, rows, space.output, space.stride[1] * image.row_step):
        order = range(len(taps))
        by_planes = convolving(computed, batch, groups, image, space.output, space.stride, taps, order, chained)
        return _Correlation(image, by_planes)
    images = np.arange(together)
    places = positions(space.output, (space.stride[0] * image.depth_step, space.stride[1] * image.row_step, 1))
    source: Image | Patches = image
    source_batch = together * image.batch_step
    if cuts(space) and groups == 1:
        source = Patches(together, times, channels, space.kernel, space.output)
        taps, places, source_batch = source.taps(), np.arange(count), channels * source.channel_step
    product = plan(
        computed,
        rows=rows,
        offsets=grid(np.arange(channels) * source.channel_step, taps),
        left_offsets=grid(np.arange(channels) * weight_steps[1], positions(space.kernel, weight_steps[2:])),
        column_offsets=grid(images * source.batch_step, places),
        places=grid(images * result_steps[0], positions(space.output, _spatial(result_steps))),
        out_row=result_steps[1],
        left_row=weight_steps[0],
        limit=source.size,
        groups=groups,
        batches=times,
        last_columns=(batch - (times - 1) * together) * count,
        out_batch=together * result_steps[0],
        out_group=rows * result_steps[1],
        source_batch=source_batch,
        source_group=channels * source.channel_step,
        left_group=rows * weight_steps[0],
        chained=chained,
    )
    return _Correlation(source, product)


# ----- its transpose ------------------------------------------------------------------------------------------------


class _Spreading(NamedTuple):
    image: Image
    parts: list[tuple[Shape, Product | Planes | NarrowPlanes | Tiles]]
    """Products, and where in the result the first element of each is."""
    covers: bool
    """Whether they write every element of the result."""


def correlate_transposed(
    grad: Any, weight: Any, bias: Any, sizes: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    dtype = _common_type(grad, weight, bias)
    if dtype is None:
        return None
    steps, weight_steps = steps_of(grad), steps_of(weight)
    if steps is None or weight_steps is None:
        return None
    computed = _computed_in(dtype)
    result = _new((grad.shape[0], weight.shape[1] * geometry.groups, *sizes), np.dtype(computed), last, workspace)
    for way in _ways():
        made = _transposed_correlation(dtype, grad.shape, steps, weight.shape, weight_steps, sizes, geometry, last, way)
        if not made.covers:
            if workspace is not DIRECT:
                raise NotImplementedError(_NOT_WRITTEN)
            result[...] = 0 if bias is None else bias.reshape(-1, *(1,) * len(sizes))
        source = made.image.read(grad, computed, workspace) if made.parts else None
        if all(
            _written(work, result[(..., *[slice(at, None) for at in first])], weight, source, bias, last, workspace)
            for first, work in made.parts
        ):
            break
    return _rounded(result, grad.dtype, last)


@functools.lru_cache(maxsize=256)
def _transposed_correlation(
    dtype: str,
    shape: Shape,
    steps: Shape,
    weight_shape: Shape,
    weight_steps: Shape,
    sizes: Shape,
    geometry: Geometry,
    last: bool,
    way: _Way,
) -> _Spreading:
    """Positions of the result that meet the same weights are a convolution of the gradient, in steps of 1."""
    by_tiles, chained = way
    batch, groups, computed = shape[0], geometry.groups, _computed_in(dtype)
    inner, rows = weight_shape[0] // groups, weight_shape[1]
    result_steps = strides_for((batch, rows * groups, *sizes), last)
    padding = tuple(2 - pad for pad in geometry.padding)
    by_tiles = by_tiles and min(padding) >= 0
    if by_tiles and winograd.fits(computed, weight_shape[2:], geometry, inner, rows, batch, sizes):
        down, across = weight_steps[3:]
        turned, planes_first = (
            (weight_steps[1], weight_steps[0], -down, -across),
            strides_for((batch, rows, *sizes), False),
        )
        start = 2 * (down + across)
        image, work = winograd.tiles(shape, steps, sizes, padding, planes_first, rows, start, turned)
        return _Spreading(image, [((), work)], True)
    space = space_of(sizes, shape[2:], weight_shape[2:], geometry)
    dims = [
        residues(*numbers)
        for numbers in zip(space.sizes, space.kernel, space.stride, space.padding, space.dilation, strict=True)
    ]
    together, times = taken_together(batch, math.prod(each[0].number for each in dims))
    low, reach = [], []
    for dim in dims:
        shifts = [(shift, each.number) for each in dim for shift in each.shifts]
        low.append(max(0, -min((shift for shift, _ in shifts), default=0)))
        reach.append(max((shift + count for shift, count in shifts), default=1) + low[-1])
    whole = (*shape[:2], *space.output)
    inside = not any(low) and all(new <= old for new, old in zip(reach, space.output, strict=True))
    if inside and dtype == computed and steps[4] == 1 and batch % together == 0:
        image = in_place(whole, steps)
    else:
        image = planar(whole, steps, tuple(low), tuple(reach), 1, together)
    image_steps = (image.depth_step, image.row_step, 1)
    moves = tuple(step * stride for step, stride in zip(_spatial(result_steps), space.stride, strict=True))
    images = np.arange(together)
    parts: list[tuple[Shape, Product | Planes | NarrowPlanes | Tiles]] = []
    covers = True
    for choice in itertools.product(*dims):
        if not all(each.taps for each in choice):
            covers = False
            continue
        counts = tuple(each.number for each in choice)
        taps = [np.array(each.taps) for each in choice]
        offsets = grid(
            *[(np.array(each.shifts) + pad) * step for each, pad, step in zip(choice, low, image_steps, strict=True)]
        )
        is_alone = set(space.stride) == {1} and fits(computed, inner, rows, space.sizes, image.row_step)
        if is_alone and _may_loop(chained):
            order = grid(taps[0] * space.kernel[1] * space.kernel[2], taps[1] * space.kernel[2], taps[2])
            alone = convolving(computed, batch, groups, image, space.sizes, (1, 1, 1), offsets, order, chained)
            return _Spreading(image, [((), alone)], True)
        product = plan(
            computed,
            rows=rows,
            offsets=grid(np.arange(inner) * image.channel_step, offsets),
            left_offsets=grid(
                np.arange(inner) * weight_steps[0],
                *[tap * step for tap, step in zip(taps, weight_steps[2:], strict=True)],
            ),
            column_offsets=grid(images * image.batch_step, positions(counts, image_steps)),
            places=grid(images * result_steps[0], positions(counts, moves)),
            out_row=result_steps[1],
            left_row=weight_steps[1],
            limit=image.size,
            groups=groups,
            batches=times,
            last_columns=(batch - (times - 1) * together) * math.prod(counts),
            out_batch=together * result_steps[0],
            out_group=rows * result_steps[1],
            source_batch=together * image.batch_step,
            source_group=inner * image.channel_step,
            left_group=inner * weight_steps[0],
            chained=chained,
        )
        parts.append((tuple(each.first for each in choice)[3 - len(sizes) :], product))
    return _Spreading(image, parts, covers)


# ----- the gradient of the weight -----------------------------------------------------------------------------------


class _Weighing(NamedTuple):
    layout: Any
    size: int
    product: Product
    columns: int
    is_direct: bool
    """Whether the product is written to the result itself."""


def weight_gradient(
    input: Any, grad: Any, kernel: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    dtype = _common_type(input, grad)
    if dtype is None:
        return None
    input, geometry = without_gaps(input, kernel, grad.shape[2:], geometry)
    steps, grad_steps = steps_of(input), steps_of(grad)
    if steps is None or grad_steps is None:
        return None
    computed = _computed_in(dtype)
    outputs, channels = grad.shape[1], input.shape[1] // geometry.groups
    chained = REPRODUCIBILITY.machine
    by_planes = channels == 1 and outputs == geometry.groups
    if by_planes and chained:
        by_planes = _may_loop(chained) and rows_are_vectors(space_of(input.shape[2:], grad.shape[2:], kernel, geometry))
    tried = _ways()[0].by_tiles
    in_tiles = tried and winograd_gradient.fits(
        computed, kernel, geometry, channels, outputs, len(input), grad.shape[2:]
    )
    in_order = grad.dtype == computed and grad.flags.c_contiguous
    if workspace is not DIRECT and (in_tiles or (by_planes and not in_order)):
        raise NotImplementedError(_NOT_WRITTEN)
    result = _new((outputs, channels, *kernel), np.dtype(computed), last, workspace)
    if by_planes:
        image, work = _depthwise_weighing(dtype, input.shape, steps, grad.shape, kernel, geometry, chained)
        slopes = grad if in_order else contiguous(grad.astype(computed, copy=False))
        # With one channel in each group the weight lies in memory in the same way whether channels come last or not.
        work.run_weights(result, slopes, image.read(input, computed, workspace), workspace)
        return _rounded(result, input.dtype, last)
    if in_tiles:
        by_tiles = _weighing_by_tiles(input.shape, steps, grad.shape, grad_steps, geometry, last)
        if by_tiles.run(result, input, grad, dtype):
            return _rounded(result, input.dtype, last)
    made = _weighing(dtype, input.shape, steps, grad.shape, grad_steps, kernel, geometry, last, chained)
    source = workspace.empty(made.size, np.dtype(computed))
    workspace.run(channels_innermost_copy(dtype, computed), source, input, made.layout)
    product = made.product
    if made.is_direct:
        product.run(result, grad, source, workspace=workspace)
        return _rounded(result, input.dtype, last)
    sums = workspace.empty((product.chunks, outputs, *kernel, channels), np.dtype(computed))
    product.run(sums, grad, source, workspace=workspace)
    total, *others = sums
    for each in others:
        np.add(total, each, total)
    np.copyto(result, dim_moved(total, -1, 1))
    return _rounded(result, input.dtype, last)


def _by_tile(channels: int, taps: int, width: int) -> Any:
    """An order of (taps, channels): so many channels of all taps together, which are neighbours in the result."""
    numbers = np.arange(taps * channels).reshape(taps, channels)
    return np.concatenate([numbers[:, at : at + width].ravel() for at in range(0, channels, width)])


@functools.lru_cache(maxsize=256)
def _weighing(
    dtype: str,
    shape: Shape,
    steps: Shape,
    grad_shape: Shape,
    grad_steps: Shape,
    kernel: Shape,
    geometry: Geometry,
    last: bool,
    chained: bool,
) -> _Weighing:
    """The summed dimension is that of the output positions; the columns are the weights of one output channel."""
    space = space_of(shape[2:], grad_shape[2:], kernel, geometry)
    batch, groups, computed = shape[0], geometry.groups, _computed_in(dtype)
    channels, rows = shape[1] // groups, grad_shape[1] // groups
    count = math.prod(space.output)
    together, times = taken_together(batch, count)
    layout, size, pitch = channels_innermost(shape, steps, space, together * times)
    sample = pitch[0] * (space.sizes[0] + 2 * space.padding[0])
    taps = [np.arange(n) * gap * step for n, gap, step in zip(space.kernel, space.dilation, pitch, strict=True)]
    moves = tuple(stride * step for stride, step in zip(space.stride, pitch, strict=True))
    images = np.arange(together)
    columns = channels * math.prod(kernel)
    order = _by_tile(channels, columns // channels, tile_for(computed, rows, columns).columns)
    places, out_row = order, columns
    is_direct = times * together * count <= _AT_ONCE
    if is_direct:
        result_steps = strides_for((rows * groups, channels, *kernel), last)
        places = grid(positions(space.kernel, _spatial(result_steps)), np.arange(channels) * result_steps[1])[order]
        out_row = result_steps[0]
    product = plan(
        computed,
        rows=rows,
        offsets=grid(images * sample, positions(space.output, moves)),
        left_offsets=grid(images * grad_steps[0], positions(space.output, grad_steps[2:])),
        column_offsets=grid(*taps, np.arange(channels))[order],
        places=places,
        out_row=out_row,
        left_row=grad_steps[1],
        limit=size,
        groups=groups,
        depth_batches=times,
        last_depth=(batch - (times - 1) * together) * count,
        out_group=rows * out_row,
        out_chunk=rows * groups * columns,
        source_group=channels,
        source_depth_batch=together * sample,
        left_group=rows * grad_steps[1],
        left_depth_batch=together * grad_steps[0],
        may_split_depth=not is_direct and not chained,
        chained=chained,
    )
    return _Weighing(layout, size, product, columns, is_direct)


@functools.lru_cache(maxsize=256)
def _weighing_by_tiles(
    shape: Shape, steps: Shape, grad_shape: Shape, grad_steps: Shape, geometry: Geometry, last: bool
) -> GradientPlan:
    result_steps = strides_for((grad_shape[1], shape[1], 3, 3), last)
    return gradient_plan(shape, steps, grad_shape, grad_steps, geometry.padding, result_steps)


@functools.lru_cache(maxsize=256)
def _depthwise_weighing(
    dtype: str, shape: Shape, steps: Shape, grad_shape: Shape, kernel: Shape, geometry: Geometry, chained: bool
) -> tuple[Image, Planes | TapPlan]:
    space, computed = space_of(shape[2:], grad_shape[2:], kernel, geometry), _computed_in(dtype)
    if rows_are_vectors(space):
        return tap_sums(computed, shape, steps, space, chained)
    image, offsets = windows(shape, steps, space, 1, dtype == computed)
    return image, planes(computed, shape[0], shape[1], image, space.output, space.stride, offsets, (), chained)
