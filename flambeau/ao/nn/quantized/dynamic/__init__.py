"""Layers with quantized weights, for floats that are quantized as they come."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__
