"""`torch.autograd.profiler_legacy`: the profiler under its older name."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).elsewhere("profile", "profiler._profile").parts()
