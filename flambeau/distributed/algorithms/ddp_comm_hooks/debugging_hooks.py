"""A function that exchanges nothing, to see what the exchange costs."""

from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ....futures import Future
from ..._buckets import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Leave the gradients of each process as they are."""
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future
