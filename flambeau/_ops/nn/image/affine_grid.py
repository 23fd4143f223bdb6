"""Grids of sampling points made by affine maps."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...._core.arrays.room import ensure_room_like
from ...._core.dtype import FLOAT
from ...._core.tensor import Tensor
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.dispatch import Array, primitive
from ...._dispatch.public.registry import public
from ...shape.view import as_shape
from ..pool.pool_window import Sizes
from .grid_sample import default_corners


def _line(count: int, align_corners: bool, real: Any) -> Any:
    """`count` points from -1 to 1: the middles of pixels, or the outermost ones at the ends."""
    if count <= 1:
        return np.zeros(count, real)
    points = np.linspace(-1, 1, count).astype(real)
    return points if align_corners else points * real(count - 1) / real(count)


def _base(size: Sizes, align_corners: bool, real: Any) -> Any:
    """The points (x, y, [z,] 1) of the identity map, one in a row."""
    lines = [_line(count, align_corners, real) for count in size[2:]]
    meshes = np.meshgrid(*lines, indexing="ij")
    return np.stack([*meshes[::-1], np.ones_like(meshes[0])], -1).reshape(-1, len(lines) + 1)


@primitive(None)
def _identity(self: Array, size: Sizes, align_corners: bool) -> Array:
    """The points of the identity map, one in a column, for each of the batch."""
    base = _base(size, align_corners, np.float32 if self.dtype.itemsize == 2 else self.dtype.type)
    return np.broadcast_to(np.array(base.T.astype(self.dtype), like=self), (size[0], *base.T.shape))


def _gradient(grad: Tensor, size: Sizes, align_corners: bool) -> Tensor:
    points = grad.reshape(size[0], math.prod(size[2:]), len(size) - 2)
    return _identity(grad, size, align_corners).bmm(points).transpose(1, 2)


@primitive("AffineGridGeneratorBackward0", theta=_gradient)
@in_single
def _affine_grid_generator(theta: Array, size: Sizes, align_corners: bool) -> Array:
    shape = (size[0], *size[2:], len(size) - 2)
    ensure_room_like(theta, shape)
    base = np.array(_base(size, align_corners, theta.dtype.type), like=theta)
    return np.matmul(base, theta.swapaxes(1, 2)).reshape(shape)


_affine_grid_generator.is_linear = True


@public(method=False)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`, without checks of the arguments."""
    sizes = as_shape((tuple(size),))
    if len(sizes) not in (4, 5):
        raise RuntimeError(f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs. Got size {list(sizes)}")
    if theta._array.shape[0] != sizes[0]:
        raise RuntimeError(
            f"affine_grid_generator: theta holds {theta._array.shape[0]} maps, but size asks for a batch of {sizes[0]}"
        )
    return _affine_grid_generator(theta, sizes, bool(align_corners))


@public("nn.functional.affine_grid", function=False, method=False)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The sampling points of an image of `size` under the affine maps `theta`, one for each of the batch."""
    corners = default_corners(align_corners)
    if theta._kind.dtype.category != FLOAT:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = as_shape((tuple(size),))
    rank = len(sizes) - 2
    if rank not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{sizes}."
        )
    shape = theta._array.shape
    if len(shape) != 3 or shape[1:] != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {sizes}. Got "
            f"{theta.size()}."
        )
    if corners and min(sizes[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: their "
            "points lie at 0, no longer at -1.",
            UserWarning,
            stacklevel=4,
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    return affine_grid_generator(theta, sizes, corners)
