"""Images and what slides over them: the examples are further images of the batch."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .level import Rule, Vmap
from .rules import as_it_is, give, rank, rule


def folded(level: Vmap, tensor: Any, kept: int) -> tuple[Any, tuple[int, ...]]:
    """All examples of a tensor with its dimensions before the last `kept` ones made one, and those dimensions."""
    value = level.front(tensor)
    shape = value._array.shape
    lead = shape[: len(shape) - kept]
    return value.reshape(math.prod(lead), *shape[len(lead) :]), lead


def unfolded(result: Any, lead: tuple[int, ...]) -> Any:
    """Results with the dimensions `lead` in place of their first."""
    if isinstance(result, Tensor):
        return result.reshape(*lead, *result._array.shape[1:])
    return None if result is None else tuple(unfolded(each, lead) for each in result)


def by_plane(kept: int | None = None, sizes: str | None = None) -> Rule:
    """An op whose tensors have at most one dimension before the last `kept`, channels and sizes; the op's name says how
    many unless that is given. The parameter `sizes` is a whole shape.
    """

    def run(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
        found = re.search(r"(\d)d", op.name)
        last = kept or (int(found[1]) + 1 if found else len(args[1]) + 1)
        given = list(args)
        lead: tuple[int, ...] = ()
        for position, each in enumerate(args):
            if isinstance(each, Tensor):
                given[position], lead = folded(level, each, last)
        if sizes is not None:
            at = op.parameters.index(sizes)
            if len(args[at]) > last:
                given[at] = (level.size * args[at][0], *args[at][1:])
        return unfolded(op(*given), lead)

    return run


_PLANES = by_plane()
give(
    _PLANES,
    "max_pool2d_with_indices max_pool3d_with_indices max_pool2d_backward max_pool3d_backward max_pool",
    "avg_pool2d avg_pool3d avg_pool2d_backward avg_pool3d_backward adaptive_avg_pool2d adaptive_avg_pool3d",
    "adaptive_avg_pool2d_backward adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool3d",
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward max_unpool2d max_unpool3d",
    "fractional_max_pool2d_backward fractional_max_pool3d_backward",
    *[f"{kind}_pad{n}d{end}" for kind in ("reflection", "replication") for n in "123" for end in ("", "_backward")],
)
_RESIZED = (
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_nearest_exact1d",
    "upsample_nearest_exact2d",
    "upsample_nearest_exact3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "upsample_bilinear2d_aa",
    "upsample_bicubic2d_aa",
    "upsample_lanczos2d_aa",
)
give(_PLANES, *_RESIZED)
give(by_plane(sizes="input_size"), *[f"{each}_backward" for each in _RESIZED])
give(by_plane(3), "im2col", "grid_sampler_2d", "grid_sampler_2d_backward")
give(by_plane(4), "grid_sampler_3d", "grid_sampler_3d_backward")
give(by_plane(2), "col2im")
give(as_it_is, "constant_pad_nd", "pixel_shuffle", "pixel_unshuffle")


@rule("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    return by_plane(rank(args[0]) - 1)(level, op, args)


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
