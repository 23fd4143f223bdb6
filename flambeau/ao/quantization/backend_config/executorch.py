"""The backend of programs for small devices."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from .... import nn
from ....nn import functional as F
from . import _families as families
from . import _types as types
from .backend_config import BackendConfig

__all__ = ["get_executorch_backend_config"]


def _same_codes(own: families.Types) -> families.Configs:
    layers = "Flatten AdaptiveAvgPool2d ConstantPad2d ELU MaxPool2d ReLU6 Hardtanh LeakyReLU"
    functional = "adaptive_avg_pool2d elu hardtanh max_pool2d pad relu relu6 leaky_relu leaky_relu_"
    functions = "clamp flatten mean permute permute_copy squeeze cat concat concatenate"
    methods = "clamp mean permute reshape relu relu_ squeeze squeeze_ leaky_relu"
    patterns: list[Any] = [getattr(nn, name) for name in layers.split()]
    patterns += [getattr(F, name) for name in functional.split()]
    patterns += [getattr(torch, name) for name in functions.split()]
    return families.plain([*patterns, *methods.split()], own, families.SHARED)


def get_executorch_backend_config() -> BackendConfig:
    """What is quantized for it."""
    both = [types.QINT8, types.QUINT8]
    linear = [types.SYMMETRIC, types.WEIGHTED, types.DYNAMIC, types.SYMMETRIC_DYNAMIC, types.DYNAMIC_HALF]
    table = families.plain([F.embedding], [types.WEIGHT_ONLY])[0]._set_input_type_to_index({"weight": 1})
    made = BackendConfig("executorch").set_backend_pattern_configs(families.linear_maps(linear))
    for configs in (
        families.convolutions([types.SYMMETRIC, types.WEIGHTED], (2,), transposed=False),
        families.binary([types.QINT8, types.WEIGHTED], ("add", "sub", "mul"), product=False),
        _same_codes(both),
        families.plain([nn.BatchNorm2d], both),
        families.embeddings([types.WEIGHT_ONLY]),
    ):
        made.set_backend_pattern_configs(configs)
    return made.set_backend_pattern_config(table)
