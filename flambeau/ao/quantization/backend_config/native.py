"""The backend that a model is quantized for where none is named."""

from __future__ import annotations

from typing import Any

from . import _types
from ._standard import Standard
from .backend_config import BackendConfig

__all__ = [
    "default_dynamic_float16_dtype_config", "default_dynamic_int8_dtype_config", "default_op_fp16_dtype_config",
    "default_op_quint8_dtype_config", "get_native_backend_config", "get_native_backend_config_dict",
    "get_test_only_legacy_native_backend_config", "get_test_only_legacy_native_backend_config_dict",
    "input_output_only_quint8_dtype_config", "weight_only_quint4x2_dtype_config", "weight_only_quint8_dtype_config",
    "weighted_op_quint8_dtype_config",
]  # fmt: skip

weighted_op_quint8_dtype_config = _types.WEIGHTED
default_op_quint8_dtype_config = _types.QUINT8
default_op_fp16_dtype_config = _types.HALF
default_dynamic_int8_dtype_config = _types.DYNAMIC
default_dynamic_float16_dtype_config = _types.DYNAMIC_HALF
input_output_only_quint8_dtype_config = _types.FLOAT_WEIGHTED
weight_only_quint8_dtype_config = _types.WEIGHT_ONLY
weight_only_quint4x2_dtype_config = _types.WEIGHT_ONLY_4_BITS


def get_native_backend_config() -> BackendConfig:
    """All that the kernels for codes can do."""
    return Standard(layer_norm=[_types.FLOAT_WEIGHTED]).named("native")


def get_native_backend_config_dict() -> dict[str, Any]:
    """What PyTorch's own kernels can do, as a dictionary."""
    return get_native_backend_config().to_dict()


def get_test_only_legacy_native_backend_config() -> BackendConfig:
    """What PyTorch's own kernels can do, numbers of 16 bits besides codes."""
    with_half = [_types.QUINT8, _types.HALF]
    return Standard(
        linear=[_types.WEIGHTED, _types.DYNAMIC, _types.DYNAMIC_HALF, _types.HALF],
        binary=with_half,
        known_range=with_half,
        same_codes=with_half,
        layer_norm=[_types.FLOAT_WEIGHTED],
    ).named("_native_and_fp16")


def get_test_only_legacy_native_backend_config_dict() -> dict[str, Any]:
    """What PyTorch's own kernels and numbers of 16 bits can do, as a dictionary."""
    return get_test_only_legacy_native_backend_config().to_dict()
