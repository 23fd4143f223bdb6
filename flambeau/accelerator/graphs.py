"""Recorded work of an accelerator: there is none."""

from __future__ import annotations

from .._core.names.absent import Table
from . import NONE_AVAILABLE

__getattr__, __dir__ = Table(__name__).raising(RuntimeError, NONE_AVAILABLE, classes="Graph").parts()
