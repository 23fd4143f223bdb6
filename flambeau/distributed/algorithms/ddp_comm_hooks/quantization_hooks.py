"""Gradients that travel as bytes, each process's with a scale and a zero of its own."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import int32, uint8
from ...._core.tensor import Tensor
from ...._ops.shape.join import cat, stack
from ....futures import Future
from ... import _calls
from ..._buckets import GradBucket
from ..._world import group_of

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_LEVELS = 255
_LEAST_SCALE = 1.1920928955078125e-07  # the step of float32 at one


def _scale_and_zero(rows: Tensor) -> tuple[Tensor, Tensor]:
    """For each row the step between two bytes and the byte that stands for zero, so that its whole range fits."""
    low = rows.amin(1).clamp(max=0)
    high = rows.amax(1).clamp(min=0)
    scale = ((high - low) / _LEVELS).clamp(min=_LEAST_SCALE)
    zero = (-(low / scale).round()).to(int32).clamp(0, _LEVELS)
    return scale, zero


def _mean_of_bytes(process_group: Any, rows: Tensor) -> Tensor:
    """The mean over all processes of rows that each process rounds to bytes."""
    group = group_of(process_group)
    size = group.size()
    scale, zero = _scale_and_zero(rows)
    settings = stack([scale, zero.to(scale.dtype)])
    all_settings = [settings.new_empty(settings.shape) for _ in range(size)]
    _calls.all_gather(all_settings, settings, group=process_group)
    coded = ((rows / scale[:, None]).round() + zero[:, None]).clamp(0, _LEVELS).to(uint8)
    all_coded = [coded.new_empty(coded.shape) for _ in range(size)]
    _calls.all_gather(all_coded, coded, group=process_group)
    total = rows.new_zeros(rows.shape)
    for (step, origin), codes in zip((each.unbind(0) for each in all_settings), all_coded, strict=True):
        total = total + (codes.to(step.dtype) - origin[:, None]) * step[:, None]
    return total / size


def _done(buffer: Tensor, mean: Tensor) -> Future[Tensor]:
    future: Future[Tensor] = Future()
    future.set_result(buffer.copy_(mean))
    return future


def quantization_pertensor_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes, of gradients that travel as bytes with one scale for a bucket."""
    buffer = bucket.buffer()
    return _done(buffer, _mean_of_bytes(process_group, buffer.view(1, -1))[0])


def quantization_perchannel_hook(process_group: Any, bucket: GradBucket, bucket_size: int = 512) -> Future[Tensor]:
    """The mean over all processes, of gradients that travel as bytes with a scale for every `bucket_size` of them."""
    buffer = bucket.buffer()
    length = buffer.numel()
    filled = cat([buffer, buffer.new_zeros(-length % bucket_size)]).view(-1, bucket_size)
    return _done(buffer, _mean_of_bytes(process_group, filled).view(-1)[:length])
