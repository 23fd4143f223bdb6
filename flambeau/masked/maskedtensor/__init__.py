"""Tensors some of whose elements do not count."""

from __future__ import annotations

from . import core, creation
from .core import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "core", "creation", "is_masked_tensor"]
