"""Special functions, under the names of `torch.special`."""

from __future__ import annotations

from ._ops.registry import FUNCTIONS

globals().update(FUNCTIONS["special"])
__all__ = sorted(FUNCTIONS["special"])
