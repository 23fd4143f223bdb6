"""Logs of gradients, under the names of `torch.utils.debug_log`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).absent("logs of gradients are not built yet", functions="debug_grad_log").parts()
