"""Shares of a CUDA device."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, where_present

__getattr__, __dir__ = where_present(
    "_green_contexts", Table(__name__).raising(RuntimeError, NEEDS_CUDA, classes="GreenContext")
)
