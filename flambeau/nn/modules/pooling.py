"""Pooling: maxima, means and norms of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .. import functional as F
from .module import Module
from .utils import _ntuple, _single

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

_Sizes = int | tuple[int, ...]
_OptionalSizes = int | None | tuple[int | None, ...]


class _MaxPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of a signal.

    Along a dimension of size L the output has `(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`
    elements.

    Args:
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        stride (int or tuple of ints, optional): the step of the window; None means `kernel_size`.
        padding (int or tuple of ints): how many elements of minus infinity are added on both sides; at most half of
            `kernel_size`. Default: `0`.
        dilation (int or tuple of ints): the distance between neighbouring elements of the window. Default: `1`.
        return_indices (bool): whether to return the positions of the maxima too, as `MaxUnpool` needs them. Default:
            `False`.
        ceil_mode (bool): whether windows that reach beyond the end count, so that output sizes are rounded up. Default:
            `False`.

    Shape:
        input: (N, C, L) or (C, L)
        output: (N, C, L'), without N if the input has none; with `return_indices` a pair of the maxima and their
            positions

    Raises:
        RuntimeError: the window is larger than the padded input, or the padding than half of the window.

    Example:
        >>> x = flambeau.arange(6.0).view(1, 1, 6)
        >>> flambeau.nn.MaxPool1d(2)(x)
        tensor([[[1., 3., 5.]]])
    """

    _function = "max_pool1d"


@documented_like(MaxPool1d)
class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of an image.

    Along a dimension of size L the output has `(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`
    elements.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C, H', W'), without N if the input has none; with `return_indices` a pair of the maxima and their
            positions

    Example:
        >>> x = flambeau.arange(16.0).view(1, 1, 4, 4)
        >>> flambeau.nn.MaxPool2d(2)(x)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """

    _function = "max_pool2d"


@documented_like(MaxPool1d)
class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of a volume.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, D', H', W'), without N if the input has none; with `return_indices` a pair of the maxima and
            their positions

    Example:
        >>> x = flambeau.arange(8.0).view(1, 1, 2, 2, 2)
        >>> flambeau.nn.MaxPool3d(2)(x)
        tensor([[[[[7.]]]]])
    """

    _function = "max_pool3d"


class _MaxUnpoolNd(Module):
    _dims: ClassVar[int]
    _function: ClassVar[str]

    def __init__(self, kernel_size: _Sizes, stride: _Sizes | None = None, padding: _Sizes = 0) -> None:
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        result: Tensor = getattr(F, self._function)(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return result


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool1d` back where they came from, and zeros elsewhere.

    Calls take the maxima, their positions as `MaxPool1d(..., return_indices=True)` returns them, and optionally
    `output_size`, which is needed where several input sizes give the same pooled size.

    Args:
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        stride (int or tuple of ints, optional): the step of the pooling window; None means `kernel_size`.
        padding (int or tuple of ints): how many elements the pooling added on both sides. Default: `0`.

    Shape:
        input: (N, C, L) or (C, L), and the positions in the same shape
        output: the shape before pooling

    Example:
        >>> x = flambeau.arange(4.0).view(1, 1, 4)
        >>> maxima, positions = flambeau.nn.MaxPool1d(2, return_indices=True)(x)
        >>> flambeau.nn.MaxUnpool1d(2)(maxima, positions).flatten()
        tensor([0., 1., 0., 3.])
    """

    _dims = 1
    _function = "max_unpool1d"


@documented_like(MaxUnpool1d)
class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool2d` back where they came from, and zeros elsewhere.

    Calls take the maxima, their positions as `MaxPool2d(..., return_indices=True)` returns them, and optionally
    `output_size`, which is needed where several input sizes give the same pooled size.

    Shape:
        input: (N, C, H, W) or (C, H, W), and the positions in the same shape
        output: the shape before pooling

    Example:
        >>> x = flambeau.arange(4.0).view(1, 1, 2, 2)
        >>> maxima, positions = flambeau.nn.MaxPool2d(2, return_indices=True)(x)
        >>> flambeau.nn.MaxUnpool2d(2)(maxima, positions).flatten()
        tensor([0., 0., 0., 3.])
    """

    _dims = 2
    _function = "max_unpool2d"


@documented_like(MaxUnpool1d)
class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool3d` back where they came from, and zeros elsewhere.

    Calls take the maxima, their positions as `MaxPool3d(..., return_indices=True)` returns them, and optionally
    `output_size`, which is needed where several input sizes give the same pooled size.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W), and the positions in the same shape
        output: the shape before pooling

    Example:
        >>> x = flambeau.arange(8.0).view(1, 1, 2, 2, 2)
        >>> maxima, positions = flambeau.nn.MaxPool3d(2, return_indices=True)(x)
        >>> flambeau.nn.MaxUnpool3d(2)(maxima, positions).flatten()
        tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """

    _dims = 3
    _function = "max_unpool3d"


class _AvgPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    kernel_size: _Sizes
    stride: _Sizes
    padding: _Sizes
    ceil_mode: bool
    count_include_pad: bool

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


@documented_like(MaxPool1d)
class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a signal.

    Along a dimension of size L the output has `(L + 2 * padding - kernel_size) // stride + 1` elements.

    Args:
        padding (int or tuple of ints): how many zeros are added on both sides; at most half of `kernel_size`. Default:
            `0`.
        count_include_pad (bool): whether the zeros of the padding count in the mean. Default: `True`.

    Shape:
        input: (N, C, L) or (C, L)
        output: (N, C, L'), without N if the input has none

    Example:
        >>> flambeau.nn.AvgPool1d(2)(flambeau.tensor([[1.0, 3.0, 5.0, 9.0]]))
        tensor([[2., 7.]])
    """

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__: ClassVar[list[str]] = [
        "kernel_size",
        "stride",
        "padding",
        "ceil_mode",
        "count_include_pad",
        "divisor_override",
    ]

    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return result


@documented_like(AvgPool1d)
class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of each window of an image.

    Along a dimension of size L the output has `(L + 2 * padding - kernel_size) // stride + 1` elements.

    Args:
        divisor_override (int, optional): what sums are divided by; None means the number of elements.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C, H', W'), without N if the input has none

    Example:
        >>> x = flambeau.arange(16.0).view(1, 4, 4)
        >>> flambeau.nn.AvgPool2d(2)(x)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """

    _function = "avg_pool2d"


@documented_like(AvgPool1d)
class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of each window of a volume.

    Args:
        divisor_override (int, optional): what sums are divided by; None means the number of elements.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, D', H', W'), without N if the input has none

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.AvgPool3d(2)(x)
        tensor([[[[3.5000]]]])
    """

    _function = "avg_pool3d"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, value)


class _FractionalMaxPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    _dims: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self._check_kernel(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        if self.output_ratio is not None and not all(0 < self.output_ratio[dim] < 1 for dim in range(self._dims)):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _check_kernel(self, kernel_size: Any) -> None:
        """Refuse what this class refuses at once."""

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


@documented_like(MaxPool2d)
class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The largest elements of windows at random places of an image, as many as are asked for.

    The places are drawn anew at each call, so that sizes can shrink by factors that are no whole numbers. Either
    `output_size` or `output_ratio` is given.

    Args:
        output_size (int or tuple of ints, optional): the size of the output.
        output_ratio (float or tuple of floats, optional): the size of the output as a share of the input's, between 0
            and 1.

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio` are given, or a ratio is not between 0 and 1.

    Example:
        >>> layer = flambeau.nn.FractionalMaxPool2d(2, output_ratio=0.7)
        >>> layer(flambeau.ones(1, 3, 10, 10)).shape
        torch.Size([1, 3, 7, 7])
    """

    _dims = 2
    _function = "fractional_max_pool2d"


@documented_like(FractionalMaxPool2d)
class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The largest elements of windows at random places of a volume, as many as are asked for.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, D', H', W'), without N if the input has none; with `return_indices` a pair of the maxima and
            their positions

    Example:
        >>> layer = flambeau.nn.FractionalMaxPool3d(2, output_ratio=0.7)
        >>> layer(flambeau.ones(1, 3, 10, 10, 10)).shape
        torch.Size([1, 3, 7, 7, 7])
    """

    _dims = 3
    _function = "fractional_max_pool3d"

    def _check_kernel(self, kernel_size: Any) -> None:
        given = (kernel_size,) if isinstance(kernel_size, int) else kernel_size
        if isinstance(given, (tuple, list)) and not all(length > 0 for length in given):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")


class _LPPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    _function: ClassVar[str]

    def __init__(
        self, norm_type: float, kernel_size: _Sizes, stride: _Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return result


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of a signal.

    `output = sum(x ** norm_type for x in window) ** (1 / norm_type)`; 1 gives the sum, infinity the maximum.

    Args:
        norm_type (float): the order of the norm, not zero.
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        stride (int or tuple of ints, optional): the step of the window; None means `kernel_size`.
        ceil_mode (bool): whether windows that reach beyond the end count, so that output sizes are rounded up. Default:
            `False`.

    Shape:
        input: (N, C, L) or (C, L)
        output: (N, C, L'), without N if the input has none

    Example:
        >>> x = flambeau.tensor([[3.0, 4.0, 6.0, 8.0]])
        >>> flambeau.nn.LPPool1d(2, kernel_size=2)(x)
        tensor([[ 5., 10.]])
    """

    _function = "lp_pool1d"


@documented_like(LPPool1d)
class LPPool2d(_LPPoolNd):
    """The p-norm of each window of an image.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C, H', W'), without N if the input has none

    Example:
        >>> x = flambeau.ones(1, 2, 4)
        >>> flambeau.nn.LPPool2d(2, kernel_size=2)(x)
        tensor([[[2., 2.]]])
    """

    _function = "lp_pool2d"


@documented_like(LPPool1d)
class LPPool3d(_LPPoolNd):
    """The p-norm of each window of a volume.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, D', H', W'), without N if the input has none

    Example:
        >>> x = flambeau.ones(1, 2, 2, 4)
        >>> flambeau.nn.LPPool3d(2, kernel_size=2)(x)
        tensor([[[[2.8284, 2.8284]]]])
    """

    _function = "lp_pool3d"


class _AdaptiveMaxPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["output_size", "return_indices"]

    _function: ClassVar[str]

    def __init__(self, output_size: _OptionalSizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows as are asked for, which together cover a signal of any size.

    Args:
        output_size (int or tuple of ints): the size of the output; an int.
        return_indices (bool): whether to return the positions of the maxima too, as `MaxUnpool` needs them. Default:
            `False`.

    Shape:
        input: (N, C, L) or (C, L)
        output: (N, C, output_size), without N if the input has none; with `return_indices` a pair of the maxima and
            their positions

    Example:
        >>> x = flambeau.arange(6.0).view(1, 6)
        >>> flambeau.nn.AdaptiveMaxPool1d(3)(x)
        tensor([[1., 3., 5.]])
    """

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows as are asked for, which together cover an image of any size.

    Args:
        output_size (int or tuple of ints): the size of the output; a number for each dimension, or one for all; None
            keeps that dimension's size.
        return_indices (bool): whether to return the positions of the maxima too, as `MaxUnpool` needs them. Default:
            `False`.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C, *output_size), without N if the input has none; with `return_indices` a pair of the maxima and
            their positions

    Example:
        >>> x = flambeau.arange(16.0).view(1, 4, 4)
        >>> flambeau.nn.AdaptiveMaxPool2d((1, 2))(x)
        tensor([[[13., 15.]]])
    """

    _function = "adaptive_max_pool2d"


@documented_like(AdaptiveMaxPool2d)
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Largest elements of as many windows as are asked for, which together cover a volume of any size.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, *output_size), without N if the input has none; with `return_indices` a pair of the maxima and
            their positions

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.AdaptiveMaxPool3d(1)(x)
        tensor([[[[7.]]]])
    """

    _function = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(Module):
    __constants__: ClassVar[list[str]] = ["output_size"]

    _function: ClassVar[str]

    def __init__(self, output_size: _OptionalSizes) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, self.output_size)
        return result


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of as many windows as are asked for, which together cover a signal of any size.

    Args:
        output_size (int or tuple of ints): the size of the output; an int.

    Shape:
        input: (N, C, L) or (C, L)
        output: (N, C, output_size), without N if the input has none

    Example:
        >>> x = flambeau.arange(6.0).view(1, 6)
        >>> flambeau.nn.AdaptiveAvgPool1d(3)(x)
        tensor([[0.5000, 2.5000, 4.5000]])
    """

    _function = "adaptive_avg_pool1d"


@documented_like(AdaptiveMaxPool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of as many windows as are asked for, which together cover an image of any size.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C, *output_size), without N if the input has none

    Example:
        >>> x = flambeau.arange(16.0).view(1, 4, 4)
        >>> flambeau.nn.AdaptiveAvgPool2d((1, 2))(x)
        tensor([[[6.5000, 8.5000]]])
    """

    _function = "adaptive_avg_pool2d"


@documented_like(AdaptiveMaxPool2d)
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of as many windows as are asked for, which together cover a volume of any size.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: (N, C, *output_size), without N if the input has none

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.AdaptiveAvgPool3d(1)(x)
        tensor([[[[3.5000]]]])
    """

    _function = "adaptive_avg_pool3d"
