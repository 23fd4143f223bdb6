"""Random orders and choices on the device: PyTorch's on CUDA, for the same seed."""

from __future__ import annotations

import math
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.choices import CHOOSING_THREADS, choose_source, shuffle_equal_source
from ...._codegen.cuda.random import THREADS
from ...._core.arrays.quick import name_of
from ...._core.random import sampling
from ...._core.random.permutation import check_dtype
from ..arrays.array import DeviceArray, empty
from ..runtime.driver import driver
from ..runtime.recording import position
from .sampling import exponential, integers_between, source_of

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_SUMMED = ("float32", "float64")
_MOST_ROWS = 65535


def permutation(self: DeviceArray, generator: Any, n: int) -> Any:
    """0, 1, ..., n - 1 in random order: in that of numbers drawn for them, and again where such are equal."""
    if n < 0:
        return None
    check_dtype(n, self.form.dtype)
    if n == 0:
        return True
    source, bits = source_of(generator), _bits_that_differ(n)
    dtype = _INT32 if bits <= 32 else _INT64
    limits = np.iinfo(dtype)
    keys: Any = empty((n,), dtype)
    integers_between(keys, source, int(limits.min), int(limits.max))
    if bits < limits.bits:
        keys = keys & dtype.type((1 << bits) - 1)
    order: Any = np.argsort(keys, kind="stable")
    ordered = keys[order]
    launch, pack = _shuffling(name_of(dtype))
    drawn = position(source, n)
    launch(-(-n // THREADS), THREADS, pack(n, order.pointer, ordered.pointer, *drawn))
    self[...] = order
    return True


def _bits_that_differ(n: int) -> int:
    """How many bits the keys of n numbers need to be all different in nine of ten cases."""
    return min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9)))))


@cache
def _shuffling(key: str) -> Any:
    return driver().compile(shuffle_equal_source(key)), Struct("=qQQQQQ").pack


def multinomial(self: DeviceArray, num_samples: int, replacement: bool, generator: Any) -> Any:
    """Indices drawn with probabilities proportional to each row."""
    weights: Any = self
    if not replacement or num_samples <= 1:
        return sampling.multinomial(weights, num_samples, replacement, generator, exponential)
    sampling.check_multinomial(weights, num_samples, replacement)
    sampling.check_multinomial_weights(weights)
    *batch, categories = weights.shape
    rows = math.prod(batch)
    if not rows or rows > _MOST_ROWS:
        return None
    dtype = weights.dtype if name_of(weights.dtype) in _SUMMED else np.dtype(np.float32)
    chances = weights.astype(dtype)
    chances = chances / chances.sum(axis=-1, keepdims=True)
    sums: Any = np.cumsum(chances, axis=-1)
    made = empty((*batch, num_samples), _INT64)
    blocks = -(-num_samples // CHOOSING_THREADS)
    launch, pack = _choosing(name_of(dtype))
    places = rows, made.pointer, sums.pointer, chances.pointer
    sizes = categories, num_samples, blocks * CHOOSING_THREADS
    launch(rows * blocks, CHOOSING_THREADS, pack(*places, *sizes, *position(source_of(generator), 4)))
    return made


@cache
def _choosing(dtype: str) -> Any:
    return driver().compile(choose_source(dtype)), Struct("=qQQQqqqQQQ").pack
