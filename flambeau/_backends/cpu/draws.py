"""Random fills by generated kernels: what they are asked for that is not ordinary is the reference kernels' affair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.random import draws as kernels
from ..._codegen.random.words import coins as throw
from ..._codegen.random.words import normals_by_polynomials, shuffled
from ..._core.generator import Generator
from ..._core.process.processor import ON_X86_64
from ..._core.random.normal_sampling import NORMAL_BLOCK
from ..._core.random.permutation import SWAPPED_FORWARDS
from .random import least_unit_above
from .reduce import bounds

Array = Any

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_SHORT_RANGE = 2**28
"""For ranges of whole numbers below, one word makes a number."""


def _float_name(out: Array, generator: Generator) -> str | None:
    """The dtype of an array that the kernels fill; None: the reference kernels do."""
    if type(generator) is not Generator or type(out) is not np.ndarray or not out.flags.c_contiguous or not out.size:
        return None
    return _FLOATS.get(out.dtype.num)


_NUMBERS = (float, int)
_FLOATS = {np.dtype(name).num: name for name in ("float32", "float64")}
_UNREAD = np.empty(1)
"""Where the second number of a last pair goes that is in its place already."""
_INT64 = {np.dtype(np.int64).num, np.dtype(np.longlong).num}


def _drawn(out: Array, generator: Generator, distribution: str, first: float, second: float = 0.0) -> Array | None:
    name = _float_name(out, generator)
    if name is None:
        return None
    kernel = _DRAWN.get((distribution, name))
    if kernel is None:
        kernel = _DRAWN[distribution, name] = kernels.drawn(distribution, name)
    size = out.size
    return kernel(out, generator.draw32(2 * size), size, first, second)


_DRAWN: dict[tuple[str, str], Any] = {}
"""The kernels of distributions, by the dtype's name."""


def exponential(out: Array, generator: Generator, rate: float = 1.0) -> Array | None:
    return _drawn(out, generator, "exponential", -1.0 / rate) if type(rate) in _NUMBERS and rate > 0 else None


def cauchy(out: Array, generator: Generator, median: float = 0.0, sigma: float = 1.0) -> Array | None:
    if type(median) not in _NUMBERS or type(sigma) not in _NUMBERS or not sigma > 0:
        return None
    return _drawn(out, generator, "cauchy", median, sigma)


def geometric(out: Array, generator: Generator, p: float) -> Array | None:
    return _drawn(out, generator, "geometric", math.log1p(-p)) if type(p) in _NUMBERS and 0 < p < 1 else None


def uniform(out: Array, generator: Generator, low: float = 0.0, high: float = 1.0) -> Array | None:
    """Numbers in [low, high)."""
    name = _float_name(out, generator)
    if name is None or type(low) not in _NUMBERS or type(high) not in _NUMBERS:
        return None
    if not -_LARGEST_FLOAT32 / 2 <= low <= high <= _LARGEST_FLOAT32 / 2:
        return None
    size = out.size
    words = generator.draw32(size if name == "float32" else 2 * size)
    return kernels.uniform_between(name)(out, words, size, low, high)


def _in_pairs(out: Array, generator: Generator, mean: float, std: float, exponential: bool) -> Array | None:
    """Four words make two numbers; what is left of the last pair waits in the generator, and comes first next time."""
    name = _float_name(out, generator)
    if name is None:
        return None
    kernel, size = kernels.normals_in_pairs(name, exponential), out.size
    with generator._lock:
        waiting = generator._next_normal
        begin, first = (0, 0.0) if waiting is None else (1, waiting)
        fresh = size - begin
        spare = np.empty(1) if fresh % 2 else _UNREAD
        kernel(out, generator.draw32(4 * ((fresh + 1) // 2)), size, mean, std, spare, begin, first)
        generator._next_normal = spare.item() if fresh % 2 else None
    return out


def normal(out: Array, generator: Generator, mean: float = 0.0, std: float = 1.0) -> Array | None:
    """Normal numbers: few in pairs, many in blocks, by another method."""
    if type(mean) not in _NUMBERS or type(std) not in _NUMBERS or not std >= 0:
        return None
    if out.size < NORMAL_BLOCK:
        return _in_pairs(out, generator, mean, std, False)
    if not ON_X86_64 or _float_name(out, generator) != "float32":
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
    return _in_pairs(out, generator, mean, std, True)


def coins(out: Array, generator: Generator, p: Any) -> Array | None:
    """Ones with probability `p`, else zeros."""
    name = _float_name(out, generator)
    if name is None or type(p) not in _NUMBERS or not 0 <= p <= 1:
        return None
    size = out.size
    return throw(name)(out, generator.draw32(2 * size), size, *least_unit_above(p))


def coins_of_chances(chances: Array, generator: Generator | None) -> Array | None:
    """For each chance a coin: one with that probability, else zero."""
    name = None if generator is None else _float_name(chances, generator)
    if name is None or generator is None:
        return None
    found = bounds(chances)
    if found is None:
        found = np.minimum.reduce(chances, None), np.maximum.reduce(chances, None)
    if not (found[0].item() >= 0 and found[1].item() <= 1):
        return None  # the reference kernel says what is wrong
    size = chances.size
    words = generator.draw32(size if name == "float32" else 2 * size)
    return kernels.coins_of_chances(name)(np.empty(chances.shape, chances.dtype), chances, words, size)


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
