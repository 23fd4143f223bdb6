"""`Size`: the shape of a tensor, a tuple of ints."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, SupportsIndex


def fits_int64(number: int) -> bool:
    """Whether a 64-bit integer holds a number: sizes, positions and steps are such."""
    return -(2**63) <= number < 2**63


class Size(tuple[int, ...]):
    """A tensor's shape. It is a tuple: index it, unpack it, compare it with tuples.

    Args:
        sizes (iterable): the sizes. Default: `()`.

    Example:
        >>> size = torch.ones(2, 3).size()
        >>> size, size[0], size.numel(), size == (2, 3)
        (torch.Size([2, 3]), 2, 6, True)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        values = tuple(sizes)
        for position, value in enumerate(values):
            if type(value) is not int:
                values = values[:position] + tuple(
                    _as_int(each, at) for at, each in enumerate(values) if at >= position
                )
                break
        return tuple.__new__(cls, values)

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        value = tuple.__getitem__(self, index)
        return tuple.__new__(Size, value) if type(index) is slice else value

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f'can only concatenate tuple (not "{type(other).__name__}") to torch.Size')
        return tuple.__new__(Size, tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return tuple.__new__(Size, tuple.__add__(other, self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


def _as_int(value: Any, position: int) -> int:
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{type(value).__name__}')")


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a row-major tensor of `shape`."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@functools.lru_cache(maxsize=1024)
def contiguous_byte_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of a row-major tensor of `shape`."""
    return tuple([step * itemsize for step in contiguous_strides(shape)])


class _Sizes(dict[tuple[int, ...], Size]):
    """The `Size` of each shape that was asked for: programs have few, and look at them often."""

    def __missing__(self, shape: tuple[int, ...]) -> Size:
        if len(self) >= _MOST:
            self.clear()
        size = self[shape] = tuple.__new__(Size, shape)
        return size


_MOST = 4096
SIZES = _Sizes()
