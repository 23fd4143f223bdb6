"""Control flow as functions: `cond` and `while_loop`."""

from __future__ import annotations

from .cond import cond
from .while_loop import while_loop

__all__ = ["cond", "while_loop"]
