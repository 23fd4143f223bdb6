"""Control flow as functions: `cond`, `while_loop` and `associative_scan`."""

from __future__ import annotations

from .associative_scan import associative_scan
from .cond import cond
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
