"""What programs with processes that come and go need, under the names of `torch.distributed.elastic.utils`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("data distributed process_state store").parts()
