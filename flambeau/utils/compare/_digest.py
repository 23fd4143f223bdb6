"""Digests of tensors: 64 bits that change with every bit, and a few numbers from which differences are estimated.

The digest is a sum over 64-bit words, each multiplied by a number of its position, so it depends neither on the number
of threads nor on the machine. The summary is made of a sample of at most `SAMPLE` elements, spread over the tensor:
sums of them with fixed random signs. The differences of such sums of two tensors have the size of the tensors'
difference, so that two runs are compared without their tensors.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

BLOCK = 4096
"""Words that share one table of multipliers."""
SAMPLE = 512
RUN = 16
"""Neighbours that are taken together: a cache line."""
SUMS = 8
"""Sums with random signs."""
WIDTH = SUMS + 2
"""Numbers of a summary: the sums, the mean of the sample, and its root mean square."""

_U64 = np.uint64
_EMPTY = np.zeros(WIDTH)


def _mixed(numbers: Any) -> Any:
    """Numbers that look random, one for each 64-bit number: the finishing steps of SplitMix64."""
    numbers = (numbers + _U64(1)) * _U64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> _U64(27))) * _U64(0x94D049BB133111EB)
    return numbers ^ (numbers >> _U64(31))


_MULTIPLIERS = _mixed(np.arange(BLOCK, dtype=_U64)) | _U64(1)


def _signs() -> Any:
    bits = _mixed(np.arange(SUMS * SAMPLE, dtype=_U64) + _U64(1 << 32)) >> _U64(63)
    rows = np.ones((SUMS + 1, SAMPLE))
    rows[:SUMS] -= 2.0 * bits.reshape(SUMS, SAMPLE).astype(np.float64)
    return rows


_SIGNS = _signs()


def digest(array: Any) -> int:
    """64 bits that stand for an array's elements and the order in which they lie in memory."""
    return digests(array)[1]


def digests(array: Any, known: int | None = None) -> tuple[int | None, int]:
    """The digest of the memory of an array, without the order of its dimensions, and its digest.

    `known` is that of the memory, where another array lies in all of it. None: the array has gaps.
    """
    order, dense = _in_memory_order(array)
    is_whole = dense.base is array or dense is array or order != 0
    if known is None or not is_whole:
        known = _of_memory(dense)
    return known if is_whole else None, (known + order) & _ALL


_ALL = 0xFFFFFFFFFFFFFFFF
_BLOCKS = _mixed(np.arange(1 << 10, dtype=_U64)) | _U64(1)


def _block_multipliers(count: int) -> Any:
    global _BLOCKS
    if count > _BLOCKS.size:
        _BLOCKS = _mixed(np.arange(2 * count, dtype=_U64)) | _U64(1)
    return _BLOCKS[:count]


def _of_memory(dense: Any) -> int:
    flat = dense.reshape(-1)
    nbytes = flat.nbytes
    if nbytes % 8:
        words = np.zeros(nbytes // 8 + 1, _U64)
        words.view(np.uint8)[:nbytes] = flat.view(np.uint8)
    else:
        words = flat.view(_U64)
    count = words.size
    if count <= BLOCK:
        total = int(np.dot(words, _MULTIPLIERS[:count]))
    else:
        whole = count // BLOCK
        sums = np.einsum("ij,j->i", words[: whole * BLOCK].reshape(whole, BLOCK), _MULTIPLIERS)
        total = int(np.dot(sums, _block_multipliers(whole)))
        rest = words[whole * BLOCK :]
        total += int(np.dot(rest, _MULTIPLIERS[: rest.size])) * (2 * whole + 3)
    return total & _ALL


def _in_memory_order(array: Any) -> tuple[int, Any]:
    """The elements without gaps, in the order of memory where there are none; and a number for that order."""
    if array.flags.c_contiguous:
        return 0, array
    axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    turned = array.transpose(axes)
    if turned.flags.c_contiguous:
        return hash(tuple(axes)), turned
    return 0, np.ascontiguousarray(array)


@functools.lru_cache(256)
def _places(size: int) -> Any:
    """Which of `size` elements are the sample: some neighbours at each of several places."""
    starts = np.linspace(0, size - RUN, SAMPLE // RUN).astype(np.int64)
    return (starts[:, None] + np.arange(RUN)).reshape(-1)


def summary(array: Any) -> Any:
    """`WIDTH` numbers, taken from a sample of the elements in their logical order."""
    size = array.size
    if not size:
        return _EMPTY
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    sample = np.asarray(flat[:] if size <= SAMPLE else flat[_places(size)])
    if sample.dtype.kind == "c":
        sample = sample.view(sample.real.dtype)[:SAMPLE]
    sample = sample.astype(np.float64)
    count = sample.size
    made = np.empty(WIDTH)
    with np.errstate(all="ignore"):
        made[: SUMS + 1] = np.dot(_SIGNS[:, :count], sample) / count**0.5
        made[SUMS] /= count**0.5
        made[SUMS + 1] = (np.dot(sample, sample) / count) ** 0.5
    return made


def relative_difference(one: Any, other: Any) -> float:
    """About how far two tensors with these summaries are apart, relative to the larger one's size; inf: not comparable.

    `one` and `other` are summaries of tensors of the same shape.
    """
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    apart = one[:SUMS] - other[:SUMS]
    size = max(one[SUMS + 1], other[SUMS + 1])
    return float("inf") if size == 0 else float(np.sqrt(np.mean(apart * apart)) / size)
