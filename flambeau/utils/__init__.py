"""Utilities around training."""

from __future__ import annotations

from flambeau.utils import checkpoint

__all__ = ["checkpoint"]
