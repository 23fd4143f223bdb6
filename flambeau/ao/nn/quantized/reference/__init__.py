"""Modules that compute with floats as quantized ones will."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__
