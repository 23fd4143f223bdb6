"""Padding: constants, reflections, repetitions and continuations around a tensor."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
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
        result: Tensor = F.pad(input, self.padding, self._mode)
        return result

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
    """Continues a signal from its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Continues an image from its other side."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Continues a volume from its other side."""

    _dims = 3


class _ConstantPadNd(_Pad):
    __constants__: ClassVar[list[str]] = ["padding", "value"]

    value: float

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.pad(input, self.padding, "constant", self.value)
        return result

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Puts `value` around a signal."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Puts `value` around an image."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Puts `value` around a volume."""

    _dims = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors a signal at its ends, which are not repeated."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors an image at its sides, which are not repeated."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors a volume at its sides, which are not repeated."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the ends of a signal."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the sides of an image."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the sides of a volume."""

    _dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Puts zeros around a signal."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Puts zeros around an image."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Puts zeros around a volume."""
