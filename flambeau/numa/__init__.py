"""Where processes and their memory lie on machines with several sockets, under the names of `torch.numa`."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("binding").parts()
