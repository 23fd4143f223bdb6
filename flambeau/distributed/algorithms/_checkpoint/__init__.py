"""Modules that keep less for backward, under the name of `torch.distributed.algorithms._checkpoint`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("checkpoint_wrapper").parts()
