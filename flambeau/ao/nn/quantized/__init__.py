"""Modules of quantized tensors, under the names of `torch.ao.nn.quantized`."""

from __future__ import annotations

from ...._core.names.absent import Table
from .modules import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeQuantize,
    Dropout,
    Embedding,
    EmbeddingBag,
    FloatFunctional,
    FXFloatFunctional,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    Linear,
    PReLU,
    QFunctional,
    Quantize,
    ReLU6,
    Sigmoid,
    Softmax,
)
from .weight_only import WeightOnlyLinear

__all__ = [
    "ELU",
    "LSTM",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "WeightOnlyLinear",
]  # fmt: skip
__getattr__, __dir__ = (
    Table(__name__)
    .submodules("dynamic functional reference")
    .elsewhere("LSTM MultiheadAttention", "ao.nn.quantized.modules")
    .parts()
)
