"""Layer, group and instance norms of quantized tensors: statistics of the numbers, results with scales of their own."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

from ...._constructors import shown_as
from .utils import output_parameters, requantized

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


class _Norm(nn.Module):
    """What the norms share; the other base is the ordinary one."""

    _OPTIONS: tuple[str, ...]
    weight: Any
    bias: Any

    def _take(self, weight: Any, bias: Any, scale: float, zero_point: int) -> None:
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        own: Any = self
        return requantized(super().forward(input.dequantize()), input, own.scale, own.zero_point)

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The norm of codes for a watched one of floats."""
        return cls.from_reference(mod, *output_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The norm of codes whose results have a given scale."""
        make: Any = cls
        options = [getattr(mod, name) for name in cls._OPTIONS]
        return make(options[0], *options[1:2], mod.weight, mod.bias, float(scale), int(zero_point), *options[2:])


class LayerNorm(_Norm, nn.LayerNorm):
    """A norm of the last dimensions."""

    _OPTIONS = ("normalized_shape",)

    def __init__(
        self,
        normalized_shape: Any,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        nn.LayerNorm.__init__(self, normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self._take(weight, bias, scale, zero_point)


class GroupNorm(_Norm, nn.GroupNorm):
    """A norm of groups of channels."""

    _OPTIONS = ("num_groups", "num_channels")

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        nn.GroupNorm.__init__(self, num_groups, num_channels, eps, affine, device, dtype)
        self._take(weight, bias, scale, zero_point)


class _InstanceNorm(_Norm):
    _OPTIONS = ("num_features",)

    def __init__(
        self,
        num_features: int,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        make: Any = super().__init__
        make(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self._take(weight, bias, scale, zero_point)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """A norm of each channel of each sequence."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """A norm of each channel of each image."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """A norm of each channel of each volume."""
