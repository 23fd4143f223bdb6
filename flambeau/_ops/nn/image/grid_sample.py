"""Sampling an image at the points of a grid."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from ...._core.arrays.quick import dim_moved
from ...._core.dtype import FLOAT, LEGACY_NAMES
from ...._core.geometry.layout import contiguous_array
from ...._core.geometry.sample_points import pixel_of_nan, tap_of_nan
from ...._core.modes import THREAD, recording
from ...._core.slots import SLOTS
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, WIDEST, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...reduce.reductions import no_kernel
from ..pool.pool_window import Sizes, row_major
from .resample import cubic_weights

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
_MODES = {"bilinear": BILINEAR, "nearest": NEAREST, "bicubic": BICUBIC}
_PADDINGS = {"zeros": ZEROS, "border": BORDER, "reflection": REFLECTION}

# ----- where the samples lie ---------------------------------------------------------------------------------------


def _inside(places: Any, size: int, rank: int, padding: int, align_corners: bool) -> tuple[Any, Any]:
    """Places moved into the image as the padding says, and by what factor a move of the place moves the result."""
    slope = np.ones_like(places)
    if padding == ZEROS:
        return places, slope
    if padding == REFLECTION:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            places, slope = np.zeros_like(places), np.zeros_like(places)
        else:
            away = places - places.dtype.type(low)
            slope = np.where(away < 0, -slope, slope)
            away = np.abs(away)
            rest = np.fmod(away, places.dtype.type(span))
            odd = np.floor(away / places.dtype.type(span)) % 2 == 1
            places = np.where(odd, span - rest + low, rest + low).astype(slope.dtype)
            slope = np.where(odd, -slope, slope)
    slope = np.where((places <= 0) | (places >= size - 1), places.dtype.type(0), slope)
    last = places.dtype.type(size - 1)
    moved = np.minimum(np.maximum(places, places.dtype.type(0)), last)
    if (pixel := pixel_of_nan(rank, last)) is not None:
        moved = np.where(np.isnan(places), pixel, moved)
    return moved, slope


def _plan(grid: Any, spatial: Sizes, mode: int, padding: int, align_corners: bool) -> tuple[Any, Any, Any, Any]:
    """For each dimension of the image: how far each point is past the pixel before it, how a move of the grid moves
    the point, and the index of each pixel that the point takes, and whether that pixel exists.
    """
    rank = len(spatial)
    real = grid.dtype.type
    points = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), rank)
    parts, slopes, indices, masks = [], [], [], []
    for dim, size in enumerate(spatial):
        normalised = points[..., rank - 1 - dim]
        if align_corners:
            places, slope = (normalised + 1) / real(2) * real(size - 1), real((size - 1) / 2)
        else:
            places, slope = ((normalised + 1) * real(size) - 1) / real(2), real(size / 2)
        moved = real(1)
        if mode != BICUBIC:
            places, moved = _inside(places, size, rank, padding, align_corners)
        with np.errstate(invalid="ignore"):
            before = np.rint(places) if mode == NEAREST else np.floor(places)
            first = np.where(np.isnan(before), real(tap_of_nan(padding == ZEROS)), before)  # with NaN as weight
            taps = [first + real(offset) for offset in _OFFSETS[mode]]
            if mode == BICUBIC:
                taps = [_inside(each, size, rank, padding, align_corners)[0] for each in taps]
            exists = [(each >= 0) & (each < size) for each in taps]
            indices.append([np.where(here, each, 0).astype(np.int64) for here, each in zip(exists, taps, strict=True)])
        parts.append(np.zeros_like(places) if mode == NEAREST else places - before)
        slopes.append(np.broadcast_to(slope * moved, places.shape))
        masks.append(exists)
    return np.stack(parts), np.stack(slopes), np.array(indices, like=places), np.array(masks, like=places)


_OFFSETS = {BILINEAR: (0, 1), NEAREST: (0,), BICUBIC: (-1, 0, 1, 2)}


def _weights(part: Any, mode: int) -> list[Any]:
    """The weight of each tap; of arrays and of tensors."""
    if mode == NEAREST:
        return [part * 0 + 1]
    return [1 - part, part] if mode == BILINEAR else cubic_weights(part)


def _slopes(part: Any, mode: int) -> list[Any]:
    """The derivative of each weight by `part`."""
    if mode == NEAREST:
        return [np.zeros_like(part)]
    if mode == BILINEAR:
        return [-np.ones_like(part), np.ones_like(part)]
    a = -0.75
    rest = 1 - part

    def near(x: Any) -> Any:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x: Any) -> Any:
        return (3 * a * x - 10 * a) * x + 8 * a

    return [far(part + 1), near(part), -near(rest), -far(rest + 1)]


def _pixels(indices: Any, masks: Any, steps: Sizes) -> Any:
    """For each combination of taps: its numbers, the index in the flattened image, and whether it exists."""
    for taps in itertools.product(range(indices.shape[1]), repeat=indices.shape[0]):
        index = sum(indices[dim][tap] * steps[dim] for dim, tap in enumerate(taps))
        exists = masks[0][taps[0]]
        for dim, tap in enumerate(taps[1:], 1):
            exists = exists & masks[dim][tap]
        yield taps, index, exists


def _product(factors: list[Any]) -> Any:
    """The product of the factors of all dimensions, the last dimension's first."""
    total = factors[-1]
    for each in factors[-2::-1]:
        total = total * each
    return total


def _shape(input: Any, grid: Any) -> Sizes:
    return (*input.shape[:2], *grid.shape[1:-1])


def _sampled(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    spatial = input.shape[2:]
    rank = len(spatial)
    parts, _, indices, masks = _plan(grid, spatial, interpolation_mode, padding_mode, align_corners)
    weights = [_weights(parts[dim], interpolation_mode) for dim in range(len(parts))]
    flat = input.reshape(*input.shape[:2], math.prod(spatial))
    result = np.zeros((*input.shape[:2], parts.shape[-1]), input.dtype, like=input)
    for taps, index, exists in _pixels(indices, masks, row_major(spatial)):
        values = np.take_along_axis(flat, index[:, np.newaxis], 2)
        weight = _product([weights[dim][tap] for dim, tap in enumerate(taps)])
        exists, weight = exists[:, np.newaxis], weight[:, np.newaxis]
        if rank == 3:  # a pixel that does not exist adds nothing, even where its weight is NaN
            values, weight = values * weight, input.dtype.type(1)
        result += np.where(exists, values, input.dtype.type(0)) * weight
    return result.reshape(_shape(input, grid))


def _sampled_backward(
    grad_output: Array, input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool,
    output_mask: tuple[bool, bool],
) -> tuple[Any, Any]:  # fmt: skip
    spatial = input.shape[2:]
    area = math.prod(spatial)
    planes = math.prod(input.shape[:2])
    parts, moves, indices, masks = _plan(grid, spatial, interpolation_mode, padding_mode, align_corners)
    weights = [_weights(parts[dim], interpolation_mode) for dim in range(len(parts))]
    slopes = [_slopes(parts[dim], interpolation_mode) for dim in range(len(parts))]
    flat = input.reshape(*input.shape[:2], area)
    wanted = grad_output.reshape(*input.shape[:2], parts.shape[-1])
    of_input = np.zeros(planes * area if output_mask[0] else 0, grad_output.dtype, like=grad_output)
    of_places = np.zeros(parts.shape, grad_output.dtype, like=grad_output)
    offsets = (np.arange(planes, like=grad_output) * area).reshape(*input.shape[:2], 1)
    for taps, index, exists in _pixels(indices, masks, row_major(spatial)):
        index, exists = index[:, np.newaxis], exists[:, np.newaxis]
        chosen = [weights[dim][tap] for dim, tap in enumerate(taps)]
        if output_mask[0]:
            shares = np.where(exists, wanted * _product(chosen)[:, np.newaxis], grad_output.dtype.type(0))
            np.add.at(of_input, (index + offsets).reshape(-1), shares.reshape(-1))
        if output_mask[1] and interpolation_mode != NEAREST:
            values = np.where(exists, np.take_along_axis(flat, index, 2) * wanted, grad_output.dtype.type(0)).sum(1)
            for dim, tap in enumerate(taps):
                of_places[dim] += values * _product([*chosen[:dim], slopes[dim][tap], *chosen[dim + 1 :]])
    of_grid = dim_moved((of_places * moves)[::-1], 0, -1).reshape(grid.shape)
    nothing = np.zeros((), grad_output.dtype, like=grad_output)
    return (
        of_input.reshape(input.shape) if output_mask[0] else np.broadcast_to(nothing, input.shape),
        contiguous_array(of_grid) if output_mask[1] else np.broadcast_to(nothing, grid.shape),
    )


# ----- derivatives -------------------------------------------------------------------------------------------------


@primitive(None)
def _grid_plan(self: Array, spatial: Sizes, mode: int, padding: int, align_corners: bool) -> Any:
    return _plan(self, spatial, mode, padding, align_corners)


def _composed(input: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """The samples, written in ops that have derivatives of every order."""
    spatial = tuple(input.shape[2:])
    rank = len(spatial)
    parts, moves, indices, masks = _grid_plan(grid.detach(), spatial, mode, padding, align_corners)
    points = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), rank)
    change = points - points.detach()  # zero, and the way to the grid
    weights = [_weights(parts[dim] + change[..., rank - 1 - dim] * moves[dim], mode) for dim in range(rank)]
    flat = input.reshape(*input.shape[:2], math.prod(spatial))
    result: Any = None
    for taps, index, exists in _pixels(indices, masks, row_major(spatial)):
        values = flat.gather(2, index.unsqueeze(1).expand(-1, input.shape[1], -1))
        weight = _product([weights[dim][tap] for dim, tap in enumerate(taps)]) * exists
        part = values * weight.unsqueeze(1)
        result = part if result is None else result + part
    return result.reshape(_shape(input, grid))


def _second_gradients(
    grads: Any, needs: Any, grad_output: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
    align_corners: bool,
) -> list[Any]:  # fmt: skip
    gradients = SLOTS.gradients
    keep = THREAD.modes.grad
    with recording(True):
        sources = [
            each.view_as(each) if each.requires_grad else each.detach().requires_grad_()
            for each in (grad_output, input, grid)
        ]
        samples = _composed(sources[1], sources[2], interpolation_mode, padding_mode, align_corners)
        first = gradients(samples, sources[1:], sources[0], create_graph=True, allow_unused=True)
        pairs = [
            (each, wanted)
            for each, wanted in zip(first, grads, strict=True)
            if each is not None and wanted is not None and each.requires_grad
        ]
        if not pairs:
            return [None, None, None]
        found = gradients(
            [each for each, _ in pairs], sources, [wanted for _, wanted in pairs], create_graph=keep, allow_unused=True
        )
    return [
        source.new_zeros(source.shape) if each is None else each for source, each in zip(sources, found, strict=True)
    ]


def _gradients(backward: Primitive[..., Tensor], grads: Any, needs: tuple[bool, ...], *saved: Any) -> list[Any]:
    if grads[0] is None:
        return [None, None]
    found = backward(grads[0], *saved, needs)
    return [each if need else None for each, need in zip(found, needs, strict=True)]


def _sampling(rank: int) -> Primitive[..., Tensor]:
    """The op that samples images of `rank` dimensions, whose derivative is one op too."""
    node, name, axes = f"GridSampler{rank}D", f"grid_sampler_{rank}d", Images(rank + 1, channels=False)

    def gradients(
        grads: Any, needs: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> list[Any]:
        return _gradients(backward, grads, needs, input, grid, interpolation_mode, padding_mode, align_corners)

    forward = primitive(f"{node}Backward0", op_name=name, axes=axes, joint=gradients)(in_single(_sampled))
    backward = primitive(
        f"{node}BackwardBackward0", op_name=f"{name}_backward", axes=axes, joint=_second_gradients
    )(in_single(_sampled_backward))  # fmt: skip
    return forward


_OPS = {rank: _sampling(rank) for rank in (2, 3)}


# ----- public ------------------------------------------------------------------------------------------------------


def _but_got(shape: tuple[int, ...], points: tuple[int, ...]) -> str:
    return f"but got input with sizes {list(shape)} and grid with sizes {list(points)}"


def _sample(
    rank: int, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    shape, points = input._array.shape, grid._array.shape
    if not shape or not points:
        raise IndexError(f"Dimension specified as 0 but tensor has no dimensions: {_but_got(shape, points)[4:]}")
    if shape[0] != points[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, {_but_got(shape, points)}"
        )
    if points[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{list(points)}"
        )
    if 0 in shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(shape)} with dimension {shape.index(0, 2)} being empty"
        )
    if len(shape) != rank + 2 or len(points) != len(shape):
        raise RuntimeError(
            f"grid_sampler(): expected {rank + 2}D input and grid with same number of dimensions, "
            f"{_but_got(shape, points)}"
        )
    if rank == 3 and interpolation_mode == BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input._kind.dtype.category != FLOAT:
        raise no_kernel(f"grid_sampler_{rank}d_cpu", input)
    if input._kind.dtype is not grid._kind.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected scalar type {LEGACY_NAMES[input.dtype]} but found {LEGACY_NAMES[grid.dtype]}: "
            "input and grid have the same dtype"
        )
    return _OPS[rank](input, grid, int(interpolation_mode), int(padding_mode), bool(align_corners))


@public(method=False, autocast=on(cpu=FULL))
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` for images."""
    return _sample(2, input, grid, interpolation_mode, padding_mode, align_corners)


@public(method=False, autocast=on(cpu=FULL))
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` for volumes."""
    return _sample(3, input, grid, interpolation_mode, padding_mode, align_corners)


@public(method=False, autocast=on(cpu=FULL, cuda=WIDEST))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers for the modes, in the order in which that lists them."""
    rank = 3 if input._array.ndim == 5 else 2
    return _sample(rank, input, grid, interpolation_mode, padding_mode, align_corners)


def default_corners(align_corners: bool | None) -> bool:
    """What None means, with a warning: the default was another one in old releases."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Say "
            "align_corners=True for the old behavior, align_corners=False to be without this warning.",
            UserWarning,
            stacklevel=4,
        )
    return bool(align_corners)


@public("nn.functional.grid_sample", function=False, method=False, autocast=on(cpu=FULL, cuda=WIDEST))
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The image at the points of `grid`, whose last dimension holds x, y (and z) from -1 to 1.

    `mode` is "bilinear", "nearest" or "bicubic"; outside the image are "zeros", its "border" or its "reflection".
    """
    if mode not in tuple(_MODES):  # unlike a dictionary, a tuple is asked for a list, too
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in tuple(_PADDINGS):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return grid_sampler(input, grid, _MODES[mode], _PADDINGS[padding_mode], default_corners(align_corners))
