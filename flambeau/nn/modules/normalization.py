"""Normalisation of each sample by itself: over layers, groups of channels, neighbouring channels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from ..._core.size import Size
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
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
    """Divides each element by a power of the mean square of neighbouring channels.

    `output = input / (k + alpha / size * sum(squares of size neighbouring channels)) ** beta`

    Args:
        size (int): how many neighbouring channels count.
        alpha (float): the factor of the mean square. Default: `0.0001`.
        beta (float): the exponent. Default: `0.75`.
        k (float): what is added to the mean square. Default: `1.0`.

    Shape:
        input: (N, C, *)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LocalResponseNorm(2, alpha=2.0, beta=1.0)
        >>> layer(flambeau.ones(1, 3, 1)).flatten().tolist()
        [0.5, 0.3333333432674408, 0.3333333432674408]
    """

    __constants__: ClassVar[list[str]] = ["size", "alpha", "beta", "k"]

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ChannelWindowNorm):
    """`LocalResponseNorm` of images with a window that lies symmetrically around each channel.

    For even sizes the window is one channel less wide. New programs use `LocalResponseNorm`.

    Args:
        size (int): how many neighbouring channels count.
        alpha (float): the factor of the mean square. Default: `0.0001`.
        beta (float): the exponent. Default: `0.75`.
        k (float): what is added to the mean square. Default: `1`.

    Shape:
        input: (N, C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)
        >>> layer(flambeau.ones(1, 3, 1, 1)).flatten().tolist()
        [0.3333333432674408, 0.25, 0.25]
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
        return input * (self.k + self.alpha / self.size * sums) ** -self.beta


def _shape_of(normalized_shape: Any) -> tuple[int, ...]:
    is_one = isinstance(normalized_shape, Integral)
    return (normalized_shape,) if is_one else tuple(normalized_shape)


class LayerNorm(_ScaleAndShift):
    """Normalises each sample over its last dimensions.

    `output = (input - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over the last dimensions.

    Args:
        normalized_shape (int or sequence of ints): the sizes of the last dimensions, over which to normalise.
        eps (float): a number added to the variance before its root is taken, so that no denominator is zero. Default:
            `1e-05`.
        elementwise_affine (bool): whether the module learns a factor and a bias for each element. Default: `True`.
        bias (bool): whether there is a bias, if `elementwise_affine`. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (*, *normalized_shape)
        output: the shape of the input

    Attributes:
        weight, bias (Parameter or None): of shape `normalized_shape`

    Raises:
        RuntimeError: the last dimensions of the input are not `normalized_shape`.

    Example:
        >>> layer = flambeau.nn.LayerNorm(2)
        >>> layer(flambeau.tensor([[1.0, 3.0], [10.0, 50.0]])).round(decimals=3).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """

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
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_ScaleAndShift):
    """Normalises each sample within groups of channels.

    `output = (input - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over the channels of a
    group and all positions.

    Args:
        num_groups (int): into how many groups the channels are divided.
        num_channels (int): how many channels there are; a multiple of `num_groups`.
        eps (float): a number added to the variance before its root is taken, so that no denominator is zero. Default:
            `1e-05`.
        affine (bool): whether the module learns a factor and a bias for each channel. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.
        bias (bool): whether there is a bias, if `affine`. Default: `True`.

    Shape:
        input: (N, C, *)
        output: the shape of the input

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.

    Attributes:
        weight, bias (Parameter or None): (C,)

    Example:
        >>> layer = flambeau.nn.GroupNorm(2, 4)
        >>> layer(flambeau.tensor([[1.0, 3.0, 10.0, 50.0]])).round(decimals=3).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """

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
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@documented_like(LayerNorm)
class RMSNorm(_ScaleAndShift):
    """Divides each sample by its root mean square over the last dimensions.

    `output = input / sqrt(mean(input ** 2) + eps) * weight`

    Args:
        eps (float, optional): a number added to the mean square; None means the smallest step of the input's dtype.
        elementwise_affine (bool): whether the module learns a factor for each element. Default: `True`.

    Attributes:
        weight (Parameter or None): of shape `normalized_shape`

    Example:
        >>> flambeau.nn.RMSNorm(2)(flambeau.tensor([[1.0, 7.0]])).tolist()
        [[0.20000000298023224, 1.399999976158142]]
    """

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
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
