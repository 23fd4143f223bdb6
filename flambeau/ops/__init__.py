"""Operators under the names of `torch.ops`: those of `aten` that have no other public name."""

from __future__ import annotations

from . import aten

__all__ = ["aten"]
