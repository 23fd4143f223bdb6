"""`torch.autograd.profiler_legacy`: not built."""

from __future__ import annotations

from .._core.absent import Table

__getattr__, __dir__ = Table(__name__).absent("profiles are not built yet", classes="profile").parts()
