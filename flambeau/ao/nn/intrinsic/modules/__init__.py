"""Modules that are one module for what quantizes."""

from .fused import *  # noqa: F403
from .fused import __all__ as __all__
