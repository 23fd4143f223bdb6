"""The backend of servers' kernels."""

from __future__ import annotations

from . import _types
from ._standard import Standard
from .backend_config import BackendConfig

__all__ = ["get_x86_backend_config"]


def get_x86_backend_config() -> BackendConfig:
    """What is quantized for it."""
    return Standard(binary=[_types.WEIGHTED], known_range=[_types.WEIGHTED]).named("x86")
