"""The mean of the gradients, as they are or rounded to half precision on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.dtype import bfloat16, dtype, float16
from ...._core.tensor import Tensor
from ....futures import Future
from ... import _calls
from ..._buckets import GradBucket
from ..._world import group_of

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes."""
    buffer = bucket.buffer().div_(group_of(process_group).size())
    work = _calls.all_reduce(buffer, group=process_group, async_op=True)
    future: Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return future


def _compressed(process_group: Any, bucket: GradBucket, narrow: dtype) -> Future[Tensor]:
    buffer = bucket.buffer()
    rounded = buffer.to(narrow).div_(group_of(process_group).size())
    work = _calls.all_reduce(rounded, group=process_group, async_op=True)
    future: Future[Tensor] = work.get_future().then(lambda done: buffer.copy_(done.value()[0]))
    return future


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes, of gradients that travel as float16."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes, of gradients that travel as bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapper(hook: Hook, narrow: dtype) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(narrow))

        def widen(done: Future[Tensor]) -> Tensor:
            value: Any = done.value()
            return buffer.copy_(value[0] if isinstance(value, list) else value)

        return hook(state, bucket).then(widen)

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another function, with gradients that travel as float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another function, with gradients that travel as bfloat16."""
    return _wrapper(hook, bfloat16)
