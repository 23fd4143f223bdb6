"""`functorch.experimental.control_flow`: branches as functions."""

from __future__ import annotations

from flambeau._torch._higher_order_ops import cond

__all__ = ["cond"]
