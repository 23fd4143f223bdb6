"""The backend of phones' kernels: codes with a sign too."""

from __future__ import annotations

from . import _types
from ._standard import Standard
from .backend_config import BackendConfig

__all__ = ["get_qnnpack_backend_config"]


def get_qnnpack_backend_config() -> BackendConfig:
    """What is quantized for it."""
    both = [_types.QINT8, _types.QUINT8]
    return Standard(
        convolution=[_types.SYMMETRIC, _types.WEIGHTED],
        linear=[_types.SYMMETRIC, _types.WEIGHTED, _types.DYNAMIC, _types.DYNAMIC_HALF],
        binary=both,
        other=both,
        known_range=both,
        same_codes=both,
        sizes=[],
    ).named("qnnpack")
