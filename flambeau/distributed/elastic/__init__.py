"""Processes that come and go, under the names of `torch.distributed.elastic`; `flambeau launch` starts them."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("agent events metrics multiprocessing rendezvous timer utils").parts()
