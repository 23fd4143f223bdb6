"""Where the windows of pooling lie: arguments, output sizes, padding, and the elements that a window sees."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from ...._core.arrays.quick import dim_moved
from ...._core.geometry.moving_windows import channel_last, output_sizes
from ...._core.tensor import Tensor
from ...._dispatch.arguments.scalar import integer, integers

Sizes = tuple[int, ...]

_WORDS = {2: "a tuple of two ints", 3: "a tuple of three ints"}
_LARGEST = 2**31 - 1
"""PyTorch counts the elements of windows in 32 bits, but for `max_pool1d`."""
_LETTERS = {1: "W", 2: "HW", 3: "THW"}


def sizes(name: str, argument: str, value: Any, rank: int, position: int) -> Sizes:
    """An argument that is one integer for all dimensions or one for each; () where a stride is left out."""
    if type(value) is int:
        return (value,) * rank
    if value is None and argument == "stride":
        return ()
    given = value if isinstance(value, (tuple, list)) else (value,)
    numbers = integers(given)
    if numbers is None:
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be tuple of ints, not {type(value).__name__}"
        )
    if len(numbers) == rank or (argument == "stride" and not numbers):
        return numbers
    if rank == 1:
        raise RuntimeError(
            f"{name}() argument '{argument}' should contain one int (got {len(numbers)}): it must be an int, or a list "
            f"or tuple of ints of size 1 but got size {len(numbers)}"
        )
    if len(numbers) != 1:
        omitted = "omitted, " if argument == "stride" else ""
        raise RuntimeError(
            f"{name}: {argument} must either be {omitted}a single int, or {_WORDS[rank]}: got {list(numbers)}"
        )
    return numbers * rank


def is_integer(value: Any) -> bool:
    """Whether PyTorch takes `value` for a number of a tuple of ints."""
    return integer(value, 1) is not None


def images_last(array: Any, rank: int) -> bool:
    """Whether the channels of images lie side by side in memory, as those of results then do; volumes keep no order."""
    return rank == 2 and channel_last(array, 2)


@functools.lru_cache(maxsize=256)
def check_window(
    name: str, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> None:
    """Refuse windows that make no sense, and shapes of inputs that have no place for one."""
    rank = len(kernel)
    letters = _LETTERS[rank]
    largest = max(*kernel, *stride, *padding, *dilation)
    if largest > _LARGEST and name != "max_pool1d":
        raise RuntimeError(f"{name}: value cannot be converted to type int without overflow: {largest}")
    for argument, numbers, prefix in (
        ("kernel size", kernel, "k"),
        ("stride", stride, "d"),
        ("dilation", dilation, "dilation"),
    ):
        if min(numbers) <= 0:
            listed = " ".join(f"{prefix}{letter}: {number}" for letter, number in zip(letters, numbers, strict=True))
            zero = " (stride should not be zero)" if argument == "stride" and 0 in numbers else ""
            raise RuntimeError(f"{name}: {argument} should be greater than zero, but got {listed}{zero}")
    for length, pad, spread in zip(kernel, padding, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"{name}: pad must be non-negative, but got pad: {pad}")
        if pad > (spread * (length - 1) + 1) // 2:
            raise RuntimeError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={length} "
                f"and dilation={spread}"
            )
    check_input(name, shape, rank)
    spatial = shape[-rank:]
    counts = output_sizes(spatial, kernel, stride, padding, dilation, ceil_mode)
    if min(counts) < 1:
        channels = shape[-rank - 1]
        raise RuntimeError(
            f"{name}: Given input size: ({'x'.join(map(str, (channels, *spatial)))}). Calculated output size: "
            f"({'x'.join(map(str, (channels, *counts)))}). Output size is too small"
        )


def check_input(name: str, shape: Sizes, rank: int) -> None:
    """The input of a pooling over `rank` dimensions has a channel, maybe a batch, and something in every dimension."""
    few, many = rank + 1, rank + 2
    if len(shape) not in (few, many) and rank > 1:
        raise RuntimeError(
            f"{name}: non-empty {few}D or {many}D (batch mode) tensor expected for input, but got:{list(shape)}"
        )
    inner = shape[-few:]
    if 0 not in inner and len(shape) in (few, many):
        return
    if rank < 3:
        raise RuntimeError(
            f"{name}: Expected {few}D or {many}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )
    raise RuntimeError(
        f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
        f"{list(shape)} and non-batch dimension {inner.index(0)} has length zero!"
    )


def check_line(name: str, input: Tensor) -> None:
    """The input of a pooling over one dimension, as PyTorch's wording for it has it."""
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )


def empty(shape: Sizes, array_type: Any, last: bool, source: Any) -> Any:
    """New memory beside `source`, with the channel innermost if `last`."""
    if not last:
        return np.empty(shape, array_type, like=source)
    return dim_moved(np.empty((shape[0], *shape[2:], shape[1]), array_type, like=source), -1, 1)


def empty_windows(array: Any, counts: Sizes, last: bool, array_type: Any = None) -> Any:
    """New memory beside `array` for one number of each window: `counts` of them along the last dimensions."""
    return empty((*array.shape[: -len(counts)], *counts), array_type or array.dtype, last, array)


def laid_out(array: Any, last: bool) -> Any:
    """The elements of `array` row-major, or with the channel innermost; the array itself where they lie so."""
    if (dim_moved(array, 1, -1) if last else array).flags.c_contiguous:
        return array
    result = empty(array.shape, array.dtype, last, array)
    result[...] = array
    return result


def padded(array: Any, before: Sizes, after: Sizes, fill: Any) -> Any:
    """`array` with a border of `fill` around its last dimensions; the array itself where the border is empty."""
    rank = len(before)
    if not any(before) and not any(after):
        return array
    inner = array.shape[-rank:]
    shape = [size + low + high for size, low, high in zip(inner, before, after, strict=True)]
    result = empty((*array.shape[:-rank], *shape), array.dtype, channel_last(array, rank), array)
    result.fill(fill)
    result[(..., *[slice(low, low + size) for low, size in zip(before, inner, strict=True)])] = array
    return result


@functools.lru_cache(maxsize=256)
def borders(
    spatial: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[Sizes, Sizes]:
    """How far windows reach beyond each end."""
    after = [
        max(0, (count - 1) * step + spread * (length - 1) + 1 - size - pad)
        for size, count, length, step, pad, spread in zip(
            spatial, counts, kernel, stride, padding, dilation, strict=True
        )
    ]
    return padding, tuple(after)


@functools.lru_cache(maxsize=256)
def window_slices(
    counts: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> tuple[tuple[Sizes, tuple[Any, ...]], ...]:
    """For each position in a window, row by row: the position, and the key to the elements of all windows there."""
    found = []
    for position in itertools.product(*map(range, kernel)):
        spans = [
            slice(at * spread, at * spread + (count - 1) * step + 1, step)
            for at, spread, count, step in zip(position, dilation, counts, stride, strict=True)
        ]
        found.append((position, (..., *spans)))
    return tuple(found)


def row_major(spatial: Sizes) -> Sizes:
    """By how much one step along each dimension moves in a flattened plane."""
    return tuple([math.prod(spatial[dim + 1 :]) for dim in range(len(spatial))])


def along(values: Any, dim: int, rank: int) -> Any:
    """A vector shaped so that it lies along dimension `dim` of the last `rank` ones."""
    return values.reshape([-1 if each == dim else 1 for each in range(rank)])
