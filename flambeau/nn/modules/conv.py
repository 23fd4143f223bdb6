"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.constants import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_WORDS = ("same", "valid")
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Weight, bias and settings of a convolution in any number of dimensions."""

    __constants__: ClassVar[list[str]] = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    _reversed_padding_repeated_twice: Sequence[int]
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_settings(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = _padding_behind_word(padding, kernel_size, dilation)
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        source, target = self.in_channels, self.out_channels
        first, second = (source, target) if self.transposed else (target, source)
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly within 1 / sqrt(inputs of one output)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        dimensions = len(self.kernel_size)
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * dimensions:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * dimensions:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check_settings(
    in_channels: int, out_channels: int, groups: int, padding: Any, stride: tuple[int, ...], padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError(f"groups must be a positive integer, got {groups}")
    if in_channels % groups != 0:
        raise ValueError(f"in_channels must be divisible by groups, got in_channels={in_channels}, groups={groups}")
    if out_channels % groups != 0:
        raise ValueError(f"out_channels must be divisible by groups, got out_channels={out_channels}, groups={groups}")
    if isinstance(padding, str):
        if padding not in _PADDING_WORDS:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDING_WORDS}")
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError(f"padding='same' is not supported for strided convolutions, got stride={stride}")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")


def _padding_behind_word(word: str, kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> list[int]:
    """The amounts of padding, last dimension first: "same" puts the odd one at the end."""
    amounts: list[int] = []
    for size, step in zip(reversed(kernel_size), reversed(dilation), strict=True):
        total = step * (size - 1) if word == "same" else 0
        amounts += [total // 2, total - total // 2]
    return amounts


class _Convolution(_ConvNd):
    """A convolution, its settings given as one number or one for each dimension."""

    _dims: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation),
            False,
            each(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        result: Tensor = getattr(F, self._function)(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )
        return result

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Slides learned filters over signals: a convolution, or rather a cross-correlation.

    Each output channel is the sum over the input channels of its group of their cross-correlation with a filter, plus a
    bias. Along a dimension of size L the output has
    `(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1` elements.

    Args:
        in_channels (int): how many channels the input has.
        out_channels (int): how many channels the output has, one for each filter.
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        stride (int or tuple of ints): the step of the window along each dimension. Default: `1`.
        padding (int, tuple of ints or str): how many elements are added on both sides; "same" keeps the size, "valid"
            adds none. Default: `0`.
        dilation (int or tuple of ints): the distance between neighbouring elements of the window. Default: `1`.
        groups (int): into how many groups channels are divided; groups do not see each other. Default: `1`.
        bias (bool): whether the module learns a bias that it adds to the result. Default: `True`.
        padding_mode (str): what the padding holds: "zeros", "reflect", "replicate" or "circular". Default: `"zeros"`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (N, in_channels, L) or (in_channels, L)
        output: (N, out_channels, L'), without N if the input has none

    Raises:
        ValueError: `groups` does not divide both channel counts, or `padding` or `padding_mode` is an unknown word.

    Attributes:
        weight (Parameter): (out_channels, in_channels / groups, *kernel_size)
        bias (Parameter or None): (out_channels,)

    Example:
        >>> layer = flambeau.nn.Conv1d(4, 8, kernel_size=3, padding=1)
        >>> layer(flambeau.ones(2, 4, 10)).shape
        torch.Size([2, 8, 10])
        >>> layer.weight.shape
        torch.Size([8, 4, 3])
    """

    _dims = 1
    _function = "conv1d"


@documented_like(Conv1d)
class Conv2d(_Convolution):
    """Slides learned filters over images: a convolution, or rather a cross-correlation.

    Each output channel is the sum over the input channels of its group of their cross-correlation with a filter, plus a
    bias. Along a dimension of size L the output has
    `(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1` elements.

    Shape:
        input: (N, in_channels, H, W) or (in_channels, H, W)
        output: (N, out_channels, H', W'), without N if the input has none

    Example:
        >>> layer = flambeau.nn.Conv2d(4, 8, kernel_size=3, padding=1)
        >>> layer(flambeau.ones(2, 4, 10, 10)).shape
        torch.Size([2, 8, 10, 10])
        >>> layer.weight.shape
        torch.Size([8, 4, 3, 3])
    """

    _dims = 2
    _function = "conv2d"


@documented_like(Conv1d)
class Conv3d(_Convolution):
    """Slides learned filters over volumes: a convolution, or rather a cross-correlation.

    Shape:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W)
        output: (N, out_channels, D', H', W'), without N if the input has none

    Example:
        >>> layer = flambeau.nn.Conv3d(4, 8, kernel_size=3, padding=1)
        >>> layer(flambeau.ones(2, 4, 6, 6, 6)).shape
        torch.Size([2, 8, 6, 6, 6])
        >>> layer.weight.shape
        torch.Size([8, 4, 3, 3, 3])
    """

    _dims = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions share: zero padding only, and an output size that may be asked for."""

    _dims: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}, got "{padding_mode}"')
        each = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            each(padding),
            each(dilation),
            True,
            each(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """The `output_padding` that makes the result `output_size` large; the layer's own without such a wish."""
        if output_size is None:
            return self.output_padding
        batched = num_spatial_dims + 2
        if len(output_size) == (batched if input.dim() == batched else batched - 1):
            output_size = output_size[-num_spatial_dims:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {num_spatial_dims} or "
                f"{input.dim()} elements (got {len(output_size)})"
            )
        steps = (1,) * num_spatial_dims if dilation is None else dilation
        smallest = [
            (input.size(dim - num_spatial_dims) - 1) * stride[dim]
            - 2 * padding[dim]
            + steps[dim] * (kernel_size[dim] - 1)
            + 1
            for dim in range(num_spatial_dims)
        ]
        largest = [low + step - 1 for low, step in zip(smallest, stride, strict=True)]
        if any(size < low or size > high for size, low, high in zip(output_size, smallest, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {tuple(output_size)}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.shape[-num_spatial_dims:]})"
            )
        return tuple(size - low for size, low in zip(output_size, smallest, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        output_padding = self._output_padding(
            input,
            output_size,
            self.stride,
            self.padding,  # type: ignore[arg-type]  # words are for plain convolutions
            self.kernel_size,
            len(self.kernel_size),
            self.dilation,
        )
        result: Tensor = getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )
        return result


@documented_like(Conv1d)
class ConvTranspose1d(_ConvTransposeNd):
    """Spreads each element of signals over a window of the output: the transpose of `Conv1d`.

    It is the gradient of `Conv1d` with respect to its input, used as a layer to make signals larger. Along a dimension
    of size L the output has `(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`
    elements.

    Args:
        out_channels (int): how many channels the output has.
        padding (int or tuple of ints): how many elements are cut off on both sides of each dimension of the output.
            Default: `0`.
        output_padding (int or tuple of ints): how many elements are added at the end of each dimension of the output,
            to choose among the sizes that `stride` leaves open. Default: `0`.
        padding_mode (str): only "zeros". Default: `"zeros"`.

    Raises:
        ValueError: `padding_mode` is not "zeros", or `groups` does not divide both channel counts.

    Attributes:
        weight (Parameter): (in_channels, out_channels / groups, *kernel_size)
        bias (Parameter or None): (out_channels,)

    Example:
        >>> layer = flambeau.nn.ConvTranspose1d(4, 8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 10)).shape
        torch.Size([2, 8, 20])
    """

    _dims = 1
    _function = "conv_transpose1d"


@documented_like(ConvTranspose1d)
class ConvTranspose2d(_ConvTransposeNd):
    """Spreads each element of images over a window of the output: the transpose of `Conv2d`.

    It is the gradient of `Conv2d` with respect to its input, used as a layer to make images larger. Along a dimension
    of size L the output has `(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`
    elements.

    Shape:
        input: (N, in_channels, H, W) or (in_channels, H, W)
        output: (N, out_channels, H', W'), without N if the input has none

    Example:
        >>> layer = flambeau.nn.ConvTranspose2d(4, 8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 10, 10)).shape
        torch.Size([2, 8, 20, 20])
    """

    _dims = 2
    _function = "conv_transpose2d"


@documented_like(ConvTranspose1d)
class ConvTranspose3d(_ConvTransposeNd):
    """Spreads each element of volumes over a window of the output: the transpose of `Conv3d`.

    It is the gradient of `Conv3d` with respect to its input, used as a layer to make volumes larger. Along a dimension
    of size L the output has `(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`
    elements.

    Shape:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W)
        output: (N, out_channels, D', H', W'), without N if the input has none

    Example:
        >>> layer = flambeau.nn.ConvTranspose3d(4, 8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 6, 6, 6)).shape
        torch.Size([2, 8, 12, 12, 12])
    """

    _dims = 3
    _function = "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin, _ConvNd):
    """A convolution that reads its number of input channels off its first input."""

    def _await_channels(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give weight and bias the shapes that `input` asks for, and draw them."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError(
                f"in_channels must be divisible by groups, got in_channels={self.in_channels}, groups={self.groups}"
            )
        cast(UninitializedParameter, self.weight).materialize(self._weight_shape())
        if self.bias is not None:
            cast(UninitializedParameter, self.bias).materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        batched = self._get_num_spatial_dims() + 2
        if input.dim() not in (batched - 1, batched):
            raise RuntimeError(
                f"Expected {batched - 1}D (unbatched) or {batched}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        channels: int = input.shape[input.dim() - batched + 1]
        return channels

    def _get_num_spatial_dims(self) -> int:
        return len(self.kernel_size)


class _LazyConvolution(_LazyConvXdMixin, _Convolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._await_channels(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._await_channels(out_channels, bias, device, dtype)


@documented_like(Conv1d)
class LazyConv1d(_LazyConvolution, Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `Conv1d`.

    Shape:
        input: (N, C, L) or (C, L)
        output: as that of `Conv1d`

    Example:
        >>> layer = flambeau.nn.LazyConv1d(8, kernel_size=3)
        >>> layer(flambeau.ones(2, 4, 10)).shape
        torch.Size([2, 8, 8])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv1d


@documented_like(LazyConv1d)
class LazyConv2d(_LazyConvolution, Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `Conv2d`.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: as that of `Conv2d`

    Example:
        >>> layer = flambeau.nn.LazyConv2d(8, kernel_size=3)
        >>> layer(flambeau.ones(2, 4, 10, 10)).shape
        torch.Size([2, 8, 8, 8])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv2d


@documented_like(LazyConv1d)
class LazyConv3d(_LazyConvolution, Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `Conv3d`.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: as that of `Conv3d`

    Example:
        >>> layer = flambeau.nn.LazyConv3d(8, kernel_size=3)
        >>> layer(flambeau.ones(2, 4, 6, 6, 6)).shape
        torch.Size([2, 8, 4, 4, 4])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv3d


@documented_like(LazyConv1d)
class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `ConvTranspose1d`.

    Args:
        out_channels (int): how many channels the output has.
        padding (int or tuple of ints): how many elements are cut off on both sides of each dimension of the output.
            Default: `0`.
        output_padding (int or tuple of ints): how many elements are added at the end of each dimension of the output,
            to choose among the sizes that `stride` leaves open. Default: `0`.
        padding_mode (str): only "zeros". Default: `"zeros"`.

    Shape:
        input: (N, C, L) or (C, L)
        output: as that of `ConvTranspose1d`

    Example:
        >>> layer = flambeau.nn.LazyConvTranspose1d(8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 10)).shape
        torch.Size([2, 8, 20])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose1d


@documented_like(LazyConvTranspose1d)
class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `ConvTranspose2d`.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: as that of `ConvTranspose2d`

    Example:
        >>> layer = flambeau.nn.LazyConvTranspose2d(8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 10, 10)).shape
        torch.Size([2, 8, 20, 20])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose2d


@documented_like(LazyConvTranspose1d)
class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input.

    Until then its parameters have no shape; after the first call the module is a `ConvTranspose3d`.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: as that of `ConvTranspose3d`

    Example:
        >>> layer = flambeau.nn.LazyConvTranspose3d(8, kernel_size=2, stride=2)
        >>> layer(flambeau.ones(2, 4, 6, 6, 6)).shape
        torch.Size([2, 8, 12, 12, 12])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose3d
