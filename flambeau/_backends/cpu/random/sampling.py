"""Random numbers by generated kernels: the words of NumPy's mt19937, coins thrown with them, and normal numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.random import words as kernels
from ...._codegen.random.words import BLOCK, coins, mersenne_blocks, shuffled
from ..runtime.dtypes import float_name

Array = Any


def mersenne_words(state: Array, blocks: int) -> Array:
    """The next blocks of words after `state`, an array of 624 words, which moves on to the last of them."""
    return mersenne_blocks()(np.empty(blocks * BLOCK, np.uint32), state, blocks)


def shuffle(words: Array, count: int) -> Array:
    """A permutation of 0, 1, ..., count - 1: each number is swapped with one of those from it on, by a word each."""
    return shuffled()(np.empty(count, np.int64), words, count)


def can_throw(out: Array) -> bool:
    """Whether `throw_coins` can fill an array."""
    return out.flags.c_contiguous and _name(out) is not None


def _name(out: Array) -> str | None:
    return "bool" if out.dtype.kind == "b" else float_name(out)


def throw_coins(out: Array, words: Array, p: float) -> None:
    """Fill `out` with ones with probability `p`, else zeros; each throw uses two words."""
    coins(_name(out))(out, words, out.size, *least_unit_above(p))


@functools.lru_cache(64)
def least_unit_above(p: float) -> tuple[int, int]:
    """The first of the 2**53 numbers in [0, 1) that is not below `p`, as two words."""
    return divmod(math.ceil(p * 2.0**53), 2**32)  # the product is exact


def normals_by_polynomials(units: Array) -> Array:
    """Standard normal numbers from blocks of 16 float32 units, as PyTorch makes them on x86-64."""
    units = np.ascontiguousarray(units)
    return kernels.normals_by_polynomials(False)(np.empty_like(units), units, units.size // 16, 0.0, 1.0)


def c_function(name: str, x: Array) -> Array:
    """A function of the C library, of each number of a float64 array."""
    x = np.ascontiguousarray(x)
    return kernels.c_function(name)(np.empty_like(x), x, x.size)
