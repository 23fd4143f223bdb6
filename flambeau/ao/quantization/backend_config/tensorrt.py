"""The backend of a library for GPUs: codes with a sign."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _families as families
from .backend_config import BackendConfig, DTypeConfig

__all__ = ["get_tensorrt_backend_config", "get_tensorrt_backend_config_dict"]


def get_tensorrt_backend_config() -> BackendConfig:
    """What is quantized for it."""
    weighted = [DTypeConfig(torch.qint8, torch.qint8, torch.qint8, torch.float)]
    plain = [DTypeConfig(torch.qint8, torch.qint8)]
    product = families.plain([torch.addmm], weighted)[0]
    made = BackendConfig("tensorrt").set_backend_pattern_configs(families.convolutions(weighted))
    made.set_backend_pattern_config(product._set_input_type_to_index({"bias": 0, "input": 1, "weight": 2}))
    for configs in (
        families.concatenation(plain),
        families.linear_maps(weighted),
        families.linear_with_others(weighted),
        families.binary(weighted),
        families.same_codes(plain),
        families.sizes(plain),
    ):
        made.set_backend_pattern_configs(configs)
    return made


def get_tensorrt_backend_config_dict() -> dict[str, Any]:
    """What TensorRT can do, as a dictionary."""
    return get_tensorrt_backend_config().to_dict()
