"""Modules of quantized tensors."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

from .activation import ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
from .rnn import LSTM
from .utils import output_parameters

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
]  # fmt: skip


class Quantize(nn.Module):
    """Floats become codes, with one scale and one zero point."""

    scale: Any
    zero_point: Any

    def __init__(self, scale: Any, zero_point: Any, dtype: Any, factory_kwargs: Any = None) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([float(scale)]))
        self.register_buffer("zero_point", torch.tensor([int(zero_point)], dtype=torch.long))
        self.dtype = dtype

    def forward(self, X: Any) -> Any:
        """The codes."""
        return torch.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """In the place of a `QuantStub` that was watched."""
        return Quantize(*output_parameters(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        """Scale, zero point and dtype."""
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """A module that turns codes into floats."""

    def forward(self, Xq: Any) -> Any:
        """The floats."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """In the place of a `DeQuantStub`."""
        return DeQuantize()
