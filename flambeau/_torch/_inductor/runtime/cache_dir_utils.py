"""Where PyTorch's compiler keeps code: it does not exist here."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("PyTorch's compiler does not exist here", functions="cache_dir default_cache_dir").parts()
)
