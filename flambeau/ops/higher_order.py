"""Operators that take functions, under the names of `torch.ops.higher_order`."""

from __future__ import annotations

from typing import Any

from .._torch._higher_order_ops import cond, while_loop

__all__ = ["cond", "while_loop"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"'_HigherOrderNamespace' 'torch.ops.higher_order' object has no attribute '{name}'")
