"""Building blocks of neural networks."""

from __future__ import annotations

from . import functional
from .parameter import Parameter

__all__ = ["Parameter", "functional"]
