"""Random fills by generated kernels: what they are asked for that is not ordinary is the reference kernels' affair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.random import draws as kernels
from ..._codegen.random.words import shuffled
from ..._core.generator import Generator
from ..._core.random.normal_sampling import NORMAL_BLOCK
from ..._core.random.permutation import SWAPPED_FORWARDS
from .random import throw_coins

Array = Any

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_SHORT_RANGE = 2**28
"""For ranges of whole numbers below, one word makes a number."""


def _float_name(out: Array, generator: Generator) -> str | None:
    """The dtype of an array that the kernels fill; None: the reference kernels do."""
    if type(generator) is not Generator or type(out) is not np.ndarray or not out.flags.c_contiguous or not out.size:
        return None
    return _FLOATS.get(out.dtype.num)


def _are_numbers(first: Any, second: Any = 0.0) -> bool:
    return type(first) in _NUMBERS and type(second) in _NUMBERS


_NUMBERS = (float, int)
_FLOATS = {np.dtype(name).num: name for name in ("float32", "float64")}
_INT64 = {np.dtype(np.int64).num, np.dtype(np.longlong).num}


def _drawn(out: Array, generator: Generator, distribution: str, first: float, second: float = 0.0) -> Array | None:
    name = _float_name(out, generator)
    if name is None:
        return None
    size = out.size
    return kernels.drawn(distribution, name)(out, generator.draw32(2 * size), size, first, second)


def exponential(out: Array, generator: Generator, rate: float = 1.0) -> Array | None:
    return _drawn(out, generator, "exponential", -1.0 / rate) if _are_numbers(rate) and rate > 0 else None


def cauchy(out: Array, generator: Generator, median: float = 0.0, sigma: float = 1.0) -> Array | None:
    return _drawn(out, generator, "cauchy", median, sigma) if _are_numbers(median, sigma) and sigma > 0 else None


def geometric(out: Array, generator: Generator, p: float) -> Array | None:
    return _drawn(out, generator, "geometric", math.log1p(-p)) if _are_numbers(p) and 0 < p < 1 else None


def uniform(out: Array, generator: Generator, low: float = 0.0, high: float = 1.0) -> Array | None:
    """Numbers in [low, high)."""
    name = _float_name(out, generator)
    if name is None or not _are_numbers(low, high) or not -_LARGEST_FLOAT32 / 2 <= low <= high <= _LARGEST_FLOAT32 / 2:
        return None
    size = out.size
    words = generator.draw32(size if name == "float32" else 2 * size)
    return kernels.uniform_between(name)(out, words, size, low, high)


def _in_pairs(out: Array, generator: Generator, mean: float, std: float, exponential: bool) -> Array | None:
    name = _float_name(out, generator)
    if name is None:
        return None
    kernel, size = kernels.normals_in_pairs(name, exponential), out.size

    def fill(words: Array, waiting: float | None) -> float:
        spare = np.empty(1)
        begin, first = (0, 0.0) if waiting is None else (1, waiting)
        kernel(out, words, size, mean, std, spare, begin, first)
        return spare.item()

    generator.normal_pairs(size, fill)
    return out


def normal(out: Array, generator: Generator, mean: float = 0.0, std: float = 1.0) -> Array | None:
    """Few normal numbers: many are made in blocks, by another method."""
    if out.size >= NORMAL_BLOCK or not _are_numbers(mean, std) or not std >= 0:
        return None
    return _in_pairs(out, generator, mean, std, False)


def log_normal(out: Array, generator: Generator, mean: float = 1.0, std: float = 2.0) -> Array | None:
    """The exponential function of normal numbers."""
    return _in_pairs(out, generator, mean, std, True) if _are_numbers(mean, std) and std > 0 else None


def coins(out: Array, generator: Generator, p: Any) -> Array | None:
    """Ones with probability `p`, else zeros."""
    if _float_name(out, generator) is None or not _are_numbers(p) or not 0 <= p <= 1:
        return None
    throw_coins(out, generator.draw32(2 * out.size), p)
    return out


def permutation(out: Array, generator: Generator, n: int) -> Array | None:
    """0, 1, ..., n - 1 in random order, in int64."""
    if not _is_int64(out, generator) or not 0 < n < SWAPPED_FORWARDS:
        return None
    return shuffled()(out, generator.draw32(n - 1), n)


def whole_between(out: Array, generator: Generator, low: int, high: int | None) -> Array | None:
    """Whole numbers in [low, high) in int64."""
    if high is None or not 0 < high - low < _SHORT_RANGE or not _is_int64(out, generator):
        return None
    size = out.size
    return kernels.whole_between()(out, generator.draw32(size), size, low, high - low)


def _is_int64(out: Array, generator: Generator) -> bool:
    return (
        type(generator) is Generator and type(out) is np.ndarray and out.dtype.num in _INT64 and out.flags.c_contiguous
    )
