"""Recorded work of an accelerator."""

from __future__ import annotations

from .._core.names.absent import Table
from ..cuda._missing import where_present
from . import NONE_AVAILABLE

__getattr__, __dir__ = where_present(
    "_accelerator",
    Table(__name__).raising(RuntimeError, NONE_AVAILABLE, classes="Graph"),
)
