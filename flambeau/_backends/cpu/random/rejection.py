"""Poisson, binomial, gamma and Dirichlet numbers, and choices by weight: generated loops over words drawn ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.random.rejection import (
    binomial_successes,
    chosen_places,
    cumulative_chances,
    gamma_numbers,
    poisson_counts,
    shares_of_rows,
)
from ...._core.generator import Generator
from ...._core.random.mersenne import BLOCK
from ...._core.random.rejection_sampling import STIRLING_TAILS, shares_of
from ...._core.random.sampling import rounded
from ..reductions import select
from ..runtime.dtypes import FULL_NAMES, KernelsByType
from . import fills

Array = Any

_HALF_SIZE = 2
_TAILS = np.array(STIRLING_TAILS)
_SMALLEST = {dtype: float(np.finfo(name).tiny) for dtype, name in FULL_NAMES.items()}
_LARGEST = {dtype: float(np.finfo(name).max) for dtype, name in FULL_NAMES.items()}
_LARGEST_SHARE = {dtype: 1.0 - float(np.finfo(name).epsneg) for dtype, name in FULL_NAMES.items()}
_AT_ONCE = 65536
"""For so many elements words are made at a time: they are to stay in the cache."""
_SHORT_ROW = 128
"""Longer rows are added up in another order."""


def _drawn(generator: Generator, elements: int, words_each: int, kernel: Any, *given: Any, waits: bool = False) -> bool:
    """Call `kernel` with what is given, with words, the progress, how many elements there are, and what waits.

    Until all are done; False: some are not ordinary. `words_each` is how many words an element may take, roughly.
    """
    progress, normal = _notes()
    with generator._lock:
        waiting = generator._next_normal if waits else None
        if waiting is not None:
            progress[2], normal[0] = 1, waiting
        done, least = 0, 0
        while done < elements:
            words = generator.words_at_hand(least or words_each * min(elements - done, _AT_ONCE) + 64)
            progress[0] = 0
            kernel(*given, words, progress, elements, normal)
            used, now, has, is_strange = progress.tolist()
            if is_strange:
                return False
            generator.skip(used)
            least = 0 if now > done else len(words) + BLOCK  # one element may take more than there were
            done = now
        if waits:
            generator._next_normal = normal.item() if has else None
    _SPARE.append((progress, normal))
    return True


_SPARE: list[tuple[Any, Any]] = []
"""Arrays for kernels to note in how far they have come, and what waits, that nobody uses at the moment."""


def _notes() -> tuple[Any, Any]:
    try:
        progress, normal = _SPARE.pop()
    except IndexError:
        return np.zeros(4, np.int64), np.empty(1)
    progress.fill(0)
    return progress, normal


_POISSON, _BINOMIAL, _GAMMA, _CUMULATIVE = (
    KernelsByType(each) for each in (poisson_counts, binomial_successes, gamma_numbers, cumulative_chances)
)


def poisson(rates: Array, generator: Any) -> Array | None:
    """A count for each rate."""
    dtype, size = rates.dtype, rates.size
    kernel = _POISSON[dtype]
    if kernel is None:
        counts = poisson(rates.astype(np.float64), generator) if dtype.itemsize == _HALF_SIZE else None
        return None if counts is None else rounded(counts, dtype)
    if type(generator) is not Generator or not size:
        return None
    out = np.empty(rates.shape, dtype)
    return out if _drawn(generator, size, 12, kernel, out, np.ascontiguousarray(rates)) else None


def binomial(count: Array, prob: Array, generator: Any) -> Array | None:
    """How many trials succeed."""
    if count.shape != prob.shape:
        count, prob = np.broadcast_arrays(count, prob)
    kernel = _BINOMIAL[count.dtype]
    if kernel is None or count.dtype is not prob.dtype or type(generator) is not Generator or not count.size:
        return None
    out, trials, chances = np.empty(count.shape, count.dtype), np.ascontiguousarray(count), np.ascontiguousarray(prob)
    return out if _drawn(generator, out.size, 12, kernel, out, trials, chances, _TAILS) else None


def gamma(shapes: Array, generator: Any) -> Array | None:
    """Gamma distributed numbers of scale 1."""
    dtype, size = shapes.dtype, shapes.size
    kernel = _GAMMA[dtype]
    if kernel is None or type(generator) is not Generator or not size:
        return None
    out, source = np.empty(shapes.shape, dtype), np.ascontiguousarray(shapes)
    return out if _drawn(generator, size, 7, kernel, out, source, _SMALLEST[dtype], waits=True) else None


def dirichlet(concentrations: Array, generator: Any) -> Array | None:
    """Rows of gamma numbers, divided by their sums."""
    name = FULL_NAMES.get(concentrations.dtype)
    if name is None:
        return None
    parts = gamma(concentrations.astype(np.float64), generator)
    if parts is None:
        return None
    dtype = concentrations.dtype
    if not parts.ndim or parts.shape[-1] > _SHORT_ROW:
        return shares_of(parts, dtype)
    columns = parts.shape[-1]
    limits = _SMALLEST[dtype], _LARGEST_SHARE[dtype]
    return shares_of_rows(name)(np.empty(parts.shape, dtype), parts, parts.size // columns, columns, *limits)


def _chosen_once(weights: Array, count: int, generator: Generator) -> Array | None:
    """Different places: those that wait least, where each is waited for as long as its weight says."""
    totals = np.add.reduce(weights, -1, keepdims=True)
    if not (np.minimum.reduce(weights, None) >= 0 and 0 < np.minimum.reduce(totals, None) <= _LARGEST[weights.dtype]):
        return None  # also where there is a NaN
    waiting = fills.exponential(np.empty(weights.shape, weights.dtype), generator)
    if waiting is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = weights / waiting
    chosen = select.leading(scores, weights.ndim - 1, count, True, count == 1)
    if chosen is not None:
        return chosen[1]
    return np.ascontiguousarray((-scores).argsort(-1, kind="stable")[..., :count])


def multinomial(weights: Array, num_samples: int, replacement: bool, generator: Any) -> Array | None:
    """Places in rows, chosen by their weights."""
    kernel = _CUMULATIVE[weights.dtype]
    if kernel is None or type(generator) is not Generator or not weights.size or weights.ndim not in (1, 2):
        return None
    source = np.ascontiguousarray(weights)
    columns = source.shape[-1]
    if not replacement or num_samples <= 1:
        # Variables are drawn in the order of the weights' memory.
        known = weights.flags.c_contiguous and 0 < num_samples <= columns <= 2**24
        return _chosen_once(source, num_samples, generator) if known else None
    rows = source.size // columns
    wrong = np.zeros(1, np.int64)
    cumulative = kernel(np.empty(source.shape), source, wrong, rows, columns)
    if wrong[0] or columns > 2**24:
        return None
    out = np.empty((*source.shape[:-1], num_samples), np.int64)
    return chosen_places()(out, cumulative, generator.draw32(2 * out.size), rows, columns, num_samples)
