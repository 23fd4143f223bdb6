"""Timers that end processes, under the names of `torch.distributed.elastic.timer`."""

from __future__ import annotations

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer, configure, expires
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "LocalTimerClient", "LocalTimerServer", "RequestQueue", "TimerClient",
    "TimerRequest", "TimerServer", "configure", "expires",
]  # fmt: skip
