"""Poisson, binomial and gamma numbers of many elements: generated loops over words that are drawn ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._codegen.random.rejection import TRIALS, binomial_successes, gamma_normals, poisson_counts

Array = Any

FEW = 4
"""Fewer elements are done by Python's own loop."""


class _Progress:
    """How far a call has come: words used of the present array, elements done, whether a normal number is waiting."""

    def __init__(self, waiting: float | None = None) -> None:
        self.numbers = np.array([0, 0, waiting is not None], np.int64)
        self.normal = np.array([0.0 if waiting is None else waiting])

    @property
    def waiting(self) -> float | None:
        return float(self.normal[0]) if self.numbers[2] else None

    def run(self, generator: Any, elements: int, expected: float, step: Callable[[Array], Any]) -> None:
        """Call `step` with words until all elements are done; `expected` is how many words they may take."""
        while (left := elements - int(self.numbers[1])) > 0:
            words = generator.words_ahead(int(expected * left / elements) + 64)
            self.numbers[0] = 0
            step(words)
            generator.draw32(int(self.numbers[0]))


def poisson(rates: Array, generator: Any) -> Array | None:
    """A count for each of a flat array of rates in float64; None: Python has to do it."""
    if rates.size < FEW or not np.isfinite(rates).all():
        return None
    out, progress = np.empty(rates.size), _Progress()
    expected = float(np.where(rates < 10, 2.2 * rates + 2.2, 6.0).sum())
    progress.run(
        generator, rates.size, expected, lambda words: poisson_counts()(out, rates, words, progress.numbers, rates.size)
    )
    return out


def binomial(trials: dict[str, Array], tails: Array, generator: Any) -> Array | None:
    """The numbers of successes; `trials` has the coefficients of the methods."""
    table = np.stack([np.asarray(trials[name], np.float64) for name in TRIALS])
    count = table.shape[1]
    if count < FEW or not np.isfinite(table).all():
        return None
    out, progress = np.empty(count), _Progress()
    means = np.maximum(trials["centres"] - 0.5, 0)
    expected = float(np.where(trials["are_many"], 6.0, 2.2 * means + 2.2).sum())
    kernel = binomial_successes()
    progress.run(generator, count, expected, lambda words: kernel(out, table, tails, words, progress.numbers, count))
    return out


def gamma(shapes: Array, d: Array, c: Array, threshold: float, generator: Any, waiting: float | None) -> Any:
    """The accepted normal numbers, the uniform numbers of shapes below 1, and the normal number that is left over."""
    count = shapes.size
    if count < FEW or not (np.isfinite(shapes).all() and (shapes >= 0).all()):
        return None
    normals, boosts, progress = np.zeros(count), np.ones(count), _Progress(waiting)
    kernel = gamma_normals()
    progress.run(
        generator,
        count,
        7.0 * count,
        lambda words: kernel(normals, boosts, shapes, d, c, threshold, words, progress.numbers, count, progress.normal),
    )
    return normals, boosts, progress.waiting
