"""Batch norms of quantized tensors, by the statistics of training."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ...._constructors import shown_as
from .utils import output_parameters, requantized

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    _relu = False

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device, dtype)
        self.register_buffer("scale", torch.tensor(1.0))
        self.register_buffer("zero_point", torch.tensor(0))

    _get_name = shown_as("Quantized{}")

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        result = F.batch_norm(
            input.dequantize(), self.running_mean, self.running_var, self.weight, self.bias, False, 0, self.eps
        )
        own: Any = self
        return requantized(F.relu(result) if self._relu else result, input, own.scale, own.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The norm of codes for a watched one of floats."""
        layer = mod if isinstance(mod, nn.modules.batchnorm._BatchNorm) else mod[0]
        made: Any = cls(layer.num_features, layer.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(layer, name))
        scale, zero_point = output_parameters(mod)
        made.scale, made.zero_point = torch.tensor(scale), torch.tensor(zero_point)
        return made

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The norm of codes whose results have a given scale."""
        made = cls.from_float(bn)
        made.scale, made.zero_point = torch.tensor(float(output_scale)), torch.tensor(int(output_zero_point))
        return made


class BatchNorm2d(_BatchNorm):
    """A batch norm of images of codes."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")


class BatchNorm3d(_BatchNorm):
    """A batch norm of volumes of codes."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 5:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
