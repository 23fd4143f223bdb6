"""Passes over graphs, under the names of `torch.fx.passes`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("utils").parts()
