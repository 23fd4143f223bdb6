"""Linear algebra, under the names of `torch.linalg`."""

from __future__ import annotations

from ._ops.registry import FUNCTIONS

globals().update(FUNCTIONS["linalg"])
__all__ = sorted(FUNCTIONS["linalg"])
