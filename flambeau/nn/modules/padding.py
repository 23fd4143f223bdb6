"""Padding: constants, reflections, repetitions and continuations around a tensor."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """One amount for all sides, or two for each dimension, the last dimension first."""

    __constants__: ClassVar[list[str]] = ["padding"]

    _dims: ClassVar[int]
    _mode: ClassVar[str]
    padding: tuple[int, ...]

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        unbatched = self._dims + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise ValueError(f"expected {unbatched}D or {unbatched + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues a signal beyond each end with what lies at the other.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right).

    Shape:
        input: (N, C, L) or (C, L)
        output: the input's shape with the padding added to the last dimension

    Example:
        >>> x = flambeau.arange(4.0).view(1, 4)
        >>> flambeau.nn.CircularPad1d((2, 1))(x)
        tensor([[2., 3., 0., 1., 2., 3., 0.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Continues an image beyond each side with what lies at the other.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom).

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: the input's shape with the padding added to the last two dimensions

    Example:
        >>> x = flambeau.arange(4.0).view(1, 2, 2)
        >>> flambeau.nn.CircularPad2d((1, 0, 1, 0))(x)
        tensor([[[3., 2., 3.],
                 [1., 0., 1.],
                 [3., 2., 3.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Continues a volume beyond each side with what lies at the other.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom, front, back).

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: the input's shape with the padding added to the last three dimensions

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.CircularPad3d((1, 0, 0, 0, 0, 0))(x)
        tensor([[[[1., 0., 1.],
                  [3., 2., 3.]],
        <BLANKLINE>
                 [[5., 4., 5.],
                  [7., 6., 7.]]]])
    """

    _dims = 3


class _ConstantPadNd(_Pad):
    __constants__: ClassVar[list[str]] = ["padding", "value"]

    value: float

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Surrounds a signal with one value.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right);
            negative numbers cut off.
        value (float): the value of the new elements.

    Shape:
        input: (*, L)
        output: the input's shape with the padding added to the last dimension

    Example:
        >>> x = flambeau.ones(1, 2)
        >>> flambeau.nn.ConstantPad1d((2, 1), 7.0)(x)
        tensor([[7., 7., 1., 1., 7.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Surrounds an image with one value.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom); negative numbers cut off.
        value (float): the value of the new elements.

    Shape:
        input: (*, H, W)
        output: the input's shape with the padding added to the last two dimensions

    Example:
        >>> x = flambeau.ones(1, 1, 2)
        >>> flambeau.nn.ConstantPad2d((1, 0, 1, 0), 7.0)(x)
        tensor([[[7., 7., 7.],
                 [7., 1., 1.]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Surrounds a volume with one value.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom, front, back); negative numbers cut off.
        value (float): the value of the new elements.

    Shape:
        input: (*, D, H, W)
        output: the input's shape with the padding added to the last three dimensions

    Example:
        >>> x = flambeau.ones(1, 1, 1, 2)
        >>> flambeau.nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 7.0)(x)
        tensor([[[[7., 1., 1.]]]])
    """

    _dims = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


@documented_like(CircularPad1d)
class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors a signal at its ends, which are not repeated themselves.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right);
            less than the input's size.

    Example:
        >>> x = flambeau.arange(4.0).view(1, 4)
        >>> flambeau.nn.ReflectionPad1d((2, 1))(x)
        tensor([[2., 1., 0., 1., 2., 3., 2.]])
    """

    _dims = 1


@documented_like(CircularPad2d)
class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors an image at its sides, which are not repeated themselves.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom); less than the input's size.

    Example:
        >>> x = flambeau.arange(4.0).view(1, 2, 2)
        >>> flambeau.nn.ReflectionPad2d((1, 0, 1, 0))(x)
        tensor([[[3., 2., 3.],
                 [1., 0., 1.],
                 [3., 2., 3.]]])
    """

    _dims = 2


@documented_like(CircularPad3d)
class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors a volume at its sides, which are not repeated themselves.

    Args:
        padding (int or tuple of ints): how many elements to add at each side: one number for all, or (left, right, top,
            bottom, front, back); less than the input's size.

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))(x)
        tensor([[[[1., 0., 1.],
                  [3., 2., 3.]],
        <BLANKLINE>
                 [[5., 4., 5.],
                  [7., 6., 7.]]]])
    """

    _dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


@documented_like(CircularPad1d)
class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the outermost elements of a signal.

    Example:
        >>> x = flambeau.arange(4.0).view(1, 4)
        >>> flambeau.nn.ReplicationPad1d((2, 1))(x)
        tensor([[0., 0., 0., 1., 2., 3., 3.]])
    """

    _dims = 1


@documented_like(CircularPad2d)
class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the outermost elements of an image.

    Example:
        >>> x = flambeau.arange(4.0).view(1, 2, 2)
        >>> flambeau.nn.ReplicationPad2d((1, 0, 1, 0))(x)
        tensor([[[0., 0., 1.],
                 [0., 0., 1.],
                 [2., 2., 3.]]])
    """

    _dims = 2


@documented_like(CircularPad3d)
class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the outermost elements of a volume.

    Example:
        >>> x = flambeau.arange(8.0).view(1, 2, 2, 2)
        >>> flambeau.nn.ReplicationPad3d((1, 0, 0, 0, 0, 0))(x)
        tensor([[[[0., 0., 1.],
                  [2., 2., 3.]],
        <BLANKLINE>
                 [[4., 4., 5.],
                  [6., 6., 7.]]]])
    """

    _dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


@documented_like(ConstantPad1d)
class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Surrounds a signal with zeros.

    Args:
        padding (int or tuple of ints): how many zeros to add at each side: one number for all, or (left, right);
            negative numbers cut off.

    Example:
        >>> x = flambeau.ones(1, 2)
        >>> flambeau.nn.ZeroPad1d((2, 1))(x)
        tensor([[0., 0., 1., 1., 0.]])
    """


@documented_like(ConstantPad2d)
class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Surrounds an image with zeros.

    Args:
        padding (int or tuple of ints): how many zeros to add at each side: one number for all, or (left, right, top,
            bottom); negative numbers cut off.

    Example:
        >>> x = flambeau.ones(1, 1, 2)
        >>> flambeau.nn.ZeroPad2d((1, 0, 1, 0))(x)
        tensor([[[0., 0., 0.],
                 [0., 1., 1.]]])
    """


@documented_like(ConstantPad3d)
class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Surrounds a volume with zeros.

    Args:
        padding (int or tuple of ints): how many zeros to add at each side: one number for all, or (left, right, top,
            bottom, front, back); negative numbers cut off.

    Example:
        >>> x = flambeau.ones(1, 1, 1, 2)
        >>> flambeau.nn.ZeroPad3d((1, 0, 0, 0, 0, 0))(x)
        tensor([[[[0., 1., 1.]]]])
    """
