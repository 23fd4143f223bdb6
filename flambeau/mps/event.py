"""Events on Apple's GPUs: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from . import WITHOUT

__getattr__, __dir__ = Table(__name__).raising(RuntimeError, WITHOUT, classes="Event").parts()
