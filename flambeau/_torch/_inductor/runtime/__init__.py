"""What PyTorch's generated code runs on: not built."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("cache_dir_utils").parts()
