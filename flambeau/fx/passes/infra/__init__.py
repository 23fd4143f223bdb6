"""The base of passes, under the names of `torch.fx.passes.infra`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("partitioner pass_base pass_manager").parts()
