"""The backend of servers' older kernels."""

from __future__ import annotations

from ._standard import Standard
from .backend_config import BackendConfig

__all__ = ["get_fbgemm_backend_config"]


def get_fbgemm_backend_config() -> BackendConfig:
    """What is quantized for it."""
    return Standard().named("fbgemm")
