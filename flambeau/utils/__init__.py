"""Utilities around training."""

from __future__ import annotations

from flambeau.utils import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
