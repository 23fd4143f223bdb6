"""Names for types in signatures."""

from __future__ import annotations

from ..utils import Pattern
from .quantize_handler import QuantizeHandler as QuantizerCls

__all__ = ["Pattern", "QuantizerCls"]
