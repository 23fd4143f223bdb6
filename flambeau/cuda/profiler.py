"""Where NVIDIA's profilers look at CUDA devices."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NOT_COMPILED, where_present

__getattr__, __dir__ = where_present(
    "_profiler", Table(__name__).raising(AssertionError, NOT_COMPILED, functions="profile start stop")
)
