"""Random fills by generated kernels: what they are asked for that is not ordinary is the reference kernels' affair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._codegen.random import draws as kernels
from ...._codegen.random.words import coins as throw
from ...._codegen.random.words import normals_by_polynomials, shuffled
from ...._core.generator import Generator
from ...._core.process.processor import ON_X86_64
from ...._core.random.normal_sampling import NORMAL_BLOCK
from ...._core.random.permutation import SWAPPED_FORWARDS
from ..reductions.reduce import bounds
from ..runtime.dtypes import KernelsByType
from .sampling import least_unit_above

Array = Any

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_SHORT_RANGE = 2**28
"""For ranges of whole numbers below, one word makes a number."""


def _ordinary(out: Array, generator: Any) -> bool:
    """Whether kernels fill an array of numbers that this generator makes; else the reference kernels do."""
    return type(generator) is Generator and type(out) is np.ndarray and out.flags.c_contiguous and out.size > 0


_NUMBERS = (float, int)
_SINGLE = np.dtype(np.float32)
_UNREAD = np.empty(1)
"""Where the second number of a last pair goes that is in its place already."""


def _of_distribution(name: str) -> KernelsByType:
    return KernelsByType(lambda dtype: kernels.drawn(name, dtype))


_EXPONENTIAL, _CAUCHY, _GEOMETRIC = map(_of_distribution, ("exponential", "cauchy", "geometric"))
_UNIFORM, _CHANCES = KernelsByType(kernels.uniform_between), KernelsByType(kernels.coins_of_chances)
_COINS = KernelsByType(throw)
_NORMAL = KernelsByType(lambda dtype: kernels.normals_in_pairs(dtype, False))
_LOG_NORMAL = KernelsByType(lambda dtype: kernels.normals_in_pairs(dtype, True))


def _drawn(of_type: KernelsByType, out: Array, generator: Generator, first: float, second: float = 0.0) -> Array | None:
    kernel = of_type[out.dtype]
    if kernel is None or not _ordinary(out, generator):
        return None
    size = out.size
    return kernel(out, generator.draw32(2 * size), size, first, second)


def exponential(out: Array, generator: Generator, rate: float = 1.0) -> Array | None:
    return _drawn(_EXPONENTIAL, out, generator, -1.0 / rate) if type(rate) in _NUMBERS and rate > 0 else None


def cauchy(out: Array, generator: Generator, median: float = 0.0, sigma: float = 1.0) -> Array | None:
    if type(median) not in _NUMBERS or type(sigma) not in _NUMBERS or not sigma > 0:
        return None
    return _drawn(_CAUCHY, out, generator, median, sigma)


def geometric(out: Array, generator: Generator, p: float) -> Array | None:
    return _drawn(_GEOMETRIC, out, generator, math.log1p(-p)) if type(p) in _NUMBERS and 0 < p < 1 else None


def uniform(out: Array, generator: Generator, low: float = 0.0, high: float = 1.0) -> Array | None:
    """Numbers in [low, high)."""
    kernel = _UNIFORM[out.dtype]
    if kernel is None or type(low) not in _NUMBERS or type(high) not in _NUMBERS or not _ordinary(out, generator):
        return None
    if not -_LARGEST_FLOAT32 / 2 <= low <= high <= _LARGEST_FLOAT32 / 2:
        return None
    return kernel(out, _one_word_each(out, generator), out.size, low, high)


def _one_word_each(array: Array, generator: Generator) -> Array:
    """Words for units of the precision of an array: one for each in float32, two in float64."""
    return generator.draw32(2 * array.size if array.itemsize == 8 else array.size)


def _in_pairs(of_type: KernelsByType, out: Array, generator: Generator, mean: float, std: float) -> Array | None:
    """Four words make two numbers; what is left of the last pair waits in the generator, and comes first next time."""
    kernel = of_type[out.dtype]
    if kernel is None or not _ordinary(out, generator):
        return None
    size = out.size
    with generator._lock:
        waiting = generator._next_normal
        begin, first = (0, 0.0) if waiting is None else (1, waiting)
        fresh = size - begin
        spare = np.empty(1) if fresh % 2 else _UNREAD
        kernel(out, generator.next_words(4 * ((fresh + 1) // 2)), size, mean, std, spare, begin, first)
        generator._next_normal = spare.item() if fresh % 2 else None
    return out


def normal(out: Array, generator: Generator, mean: float = 0.0, std: float = 1.0) -> Array | None:
    """Normal numbers: few in pairs, many in blocks, by another method."""
    if type(mean) not in _NUMBERS or type(std) not in _NUMBERS or not std >= 0:
        return None
    if out.size < NORMAL_BLOCK:
        return _in_pairs(_NORMAL, out, generator, mean, std)
    if not ON_X86_64 or out.dtype != _SINGLE or not _ordinary(out, generator):
        return None
    return _in_blocks(out.reshape(-1), generator, mean, std).reshape(out.shape)


def _in_blocks(out: Array, generator: Generator, mean: float, std: float) -> Array:
    """Whole blocks; where they do not fill `out`, its end is made again of words of its own."""
    size = out.size
    rest = size % NORMAL_BLOCK
    kernel, words = normals_by_polynomials(True), generator.draw32(size + NORMAL_BLOCK if rest else size)
    kernel(out, words, size // NORMAL_BLOCK, mean, std)
    if rest:
        kernel(out[size - NORMAL_BLOCK :], words[size:], 1, mean, std)
    return out


def log_normal(out: Array, generator: Generator, mean: float = 1.0, std: float = 2.0) -> Array | None:
    """The exponential function of normal numbers."""
    if type(mean) not in _NUMBERS or type(std) not in _NUMBERS or not std > 0:
        return None
    return _in_pairs(_LOG_NORMAL, out, generator, mean, std)


def coins(out: Array, generator: Generator, p: Any) -> Array | None:
    """Ones with probability `p`, else zeros."""
    kernel = _COINS[out.dtype]
    if kernel is None or type(p) not in _NUMBERS or not 0 <= p <= 1 or not _ordinary(out, generator):
        return None
    size = out.size
    return kernel(out, generator.draw32(2 * size), size, *least_unit_above(p))


def coins_of_chances(chances: Array, generator: Generator | None) -> Array | None:
    """For each chance a coin: one with that probability, else zero."""
    kernel = _CHANCES[chances.dtype]
    if kernel is None or generator is None or not _ordinary(chances, generator):
        return None
    found = bounds(chances)
    if found is None:
        found = np.minimum.reduce(chances, None), np.maximum.reduce(chances, None)
    if not (found[0].item() >= 0 and found[1].item() <= 1):
        return None  # the reference kernel says what is wrong
    words = _one_word_each(chances, generator)
    return kernel(np.empty(chances.shape, chances.dtype), chances, words, chances.size)


def permutation(out: Array, generator: Generator, n: int) -> Array | None:
    """0, 1, ..., n - 1 in random order, in int64."""
    kernel = _SHUFFLED[out.dtype]
    if kernel is None or not 0 < n < SWAPPED_FORWARDS or not _ordinary(out, generator):
        return None
    return kernel(out, generator.draw32(n - 1), n)


_SHUFFLED = KernelsByType(lambda _: shuffled(), {np.dtype(np.int64): "int64"})


def whole_between(out: Array, generator: Generator, low: int, high: int | None) -> Array | None:
    """Whole numbers in [low, high) in int64."""
    kernel = _WHOLE[out.dtype]
    if kernel is None or high is None or not 0 < high - low < _SHORT_RANGE or not _ordinary(out, generator):
        return None
    size = out.size
    return kernel(out, generator.draw32(size), size, low, high - low)


_WHOLE = KernelsByType(lambda _: kernels.whole_between(), {np.dtype(np.int64): "int64"})
