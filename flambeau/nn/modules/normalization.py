"""Normalisation of each sample by itself: over layers, groups of channels, neighbouring channels."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.size import Size
from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _ScaleAndShift(Module):
    """What normalisations with parameters share: a weight, or a weight and a bias, or none."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(self, shape: Any, device: Any, dtype: Any, **wanted: bool) -> None:
        for name, present in wanted.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if present else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            parameter = self._parameters.get(name)
            if parameter is not None:
                fill(parameter)


class _ChannelWindowNorm(Module):
    """Settings of the two normalisations over neighbouring channels."""

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ChannelWindowNorm):
    """Divides by a power of the mean square of `size` neighbouring channels."""

    __constants__: ClassVar[list[str]] = ["size", "alpha", "beta", "k"]

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
        return result


class CrossMapLRN2d(_ChannelWindowNorm):
    """`LocalResponseNorm` of images whose window lies symmetrically around a channel, one less wide for even sizes.

    As in PyTorch, the first channel counts in every window.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        squares = input * input
        sums = F.pad(squares, (0, 0, 0, 0, reach, reach)).unfold(1, 2 * reach + 1, 1).sum(-1)
        sums[:, reach + 1 :] += squares[:, :1]
        result: Tensor = input * (self.k + self.alpha / self.size * sums) ** -self.beta
        return result


def _shape_of(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_ScaleAndShift):
    """Normalises over the last dimensions, whose sizes are `normalized_shape`."""

    __constants__: ClassVar[list[str]] = ["normalized_shape", "eps", "elementwise_affine"]

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | list[int] | Size,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        has_bias = elementwise_affine and bias
        self._make_parameters(self.normalized_shape, device, dtype, weight=elementwise_affine, bias=has_bias)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_ScaleAndShift):
    """Normalises each of `num_groups` groups of channels."""

    __constants__: ClassVar[list[str]] = ["num_groups", "num_channels", "eps", "affine"]

    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_ScaleAndShift):
    """Divides by the root mean square over the last dimensions, whose sizes are `normalized_shape`."""

    __constants__: ClassVar[list[str]] = ["normalized_shape", "eps", "elementwise_affine"]

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | list[int] | Size,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, device, dtype, weight=elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
        return result

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
