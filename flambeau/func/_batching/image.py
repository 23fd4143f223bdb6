"""Images whose batch is said by an argument, or is that of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch.op import Op
from .by_axes import folded, rank, unfolded
from .level import Vmap
from .rules import rule


@rule("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, groups = args
    images, lead = folded(level, tensor, rank(tensor) - 1)
    return unfolded(op(images, groups), lead)


@rule("fractional_max_pool2d", "fractional_max_pool3d")
def _fractional(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, kernel, output, samples = args
    planes, lead = folded(level, tensor, len(kernel) + 1)
    places = level.front(samples).reshape(planes._array.shape[0], *samples._array.shape[-2:])
    return unfolded(op(planes, kernel, output, places), lead)


@rule("affine_grid_generator")
def _affine_grid(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    theta, size, corners = args
    value, lead = folded(level, theta, 2)
    return unfolded(op(value, (level.size * size[0], *size[1:]), corners), lead)
