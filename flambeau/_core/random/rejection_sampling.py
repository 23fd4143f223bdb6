"""Poisson, binomial and gamma numbers, each from as many draws as it takes, number for number those of PyTorch.

Where the draws of one number begin depends on how many the numbers before it took, so these methods go through the
elements one after the other. What does not depend on the draws is computed for all elements at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.arrays.quick import name_of
from ..generator import Generator, OneByOne
from ..process.processor import ON_X86_64
from .fused_multiply_add import fused
from .sampling import not_implemented, rounded

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

_LARGE_MEAN = 10.0
"""From this mean on, counts come from a transformed uniform variable that is accepted or rejected (Hormann, 1993)."""
STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
"""log k! less Stirling's formula, for k from 0 to 9."""


# Counts ---------------------------------------------------------------------------------------------------------------


def poisson(rates: Array, generator: Generator) -> Array:
    """For each rate the number of events in a unit of time."""
    if name_of(rates.dtype) not in ("float16", "bfloat16", "float32", "float64"):
        raise not_implemented("poisson_cpu", rates.dtype)
    if not (rates >= 0).all():
        raise RuntimeError(
            "invalid Poisson rate, expected rate to be non-negative: "
            f"the smallest of `input` is {np.min(rates.astype(np.float64))}"
        )
    with generator.one_by_one() as source:
        units = source.units
        counts = [
            _poisson_of_large_rate(rate, units) if rate >= _LARGE_MEAN else _poisson_of_small_rate(rate, units)
            for rate in rates.ravel().tolist()
        ]
    return rounded(np.array(counts, np.float64), rates.dtype).reshape(rates.shape)


def _poisson_of_small_rate(rate: float, units: Iterator[float]) -> int:
    """How many uniform numbers can be multiplied before the product falls below exp(-rate)."""
    if rate == 0:
        return 0
    limit = math.exp(-rate)
    count = 0
    product = next(units)
    while product > limit:
        count += 1
        product *= next(units)
    return count


def _poisson_of_large_rate(rate: float, units: Iterator[float]) -> int:
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    sure = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = next(units) - 0.5
        v = next(units)
        edge = 0.5 - abs(u)
        # At the very edge the count is a huge negative number.
        count = math.floor((2 * a / edge + b) * u + rate + 0.43) if edge else -1
        if edge >= 0.07 and v <= sure:
            return count
        if count < 0 or (edge < 0.013 and v > edge):
            continue
        log_v = math.log(v) if v else -math.inf
        hat = log_v + math.log(1.1239 + 1.1328 / (b - 3.4)) - math.log(a / (edge * edge) + b)
        if hat <= -rate + count * math.log(rate) - math.lgamma(count + 1):
            return count


def binomial(counts: Array, chances: Array, generator: Generator) -> Array:
    """How many of `counts` trials succeed, each with probability `chances`; both have the same shape and dtype."""
    if name_of(counts.dtype) not in ("float32", "float64"):
        raise not_implemented("binomial_cpu", counts.dtype)
    if np.isnan(counts).any():
        raise ValueError("binomial expects the numbers of trials in `count` to be numbers, but some are nan")
    often = chances > 0.5
    rare = np.where(often, 1 - chances, chances)
    drawn = (counts > 0) & (rare > 0)
    successes = np.where(np.isnan(chances) & (counts > 0), chances, 0)
    with generator.one_by_one() as source:
        trials = _Trials(_coefficients(counts[drawn], rare[drawn]))
        successes[drawn] = [trials.successes(index, source.units) for index in range(len(trials.counts))]
    return np.where(often & (counts > 0), counts - successes, successes)


def _coefficients(counts: Array, chances: Array) -> dict[str, Array]:
    """For each element of two flat arrays the coefficients of its method: a part of them in the arrays' precision."""
    means = counts * chances
    deviations = np.sqrt(means * (1 - chances)).astype(np.float64)
    return {
        "counts": counts,
        "are_many": means >= _LARGE_MEAN,
        "centres": means.astype(np.float64) + 0.5,
        "modes": np.floor((counts + 1) * chances),
        "odds": chances / (1 - chances),
        "log_failures": np.log1p(-chances),
        "deviations": deviations,
        "bs": 1.15 + 2.53 * deviations,
        "as_": -0.0873 + 0.0248 * (1.15 + 2.53 * deviations) + 0.01 * chances,
    }


class _Trials:
    """The method for one element after the other."""

    def __init__(self, coefficients: dict[str, Array]) -> None:
        self.counts: list[float] = coefficients["counts"].tolist()
        self.are_many: list[bool] = coefficients["are_many"].tolist()
        self.centres: list[float] = coefficients["centres"].tolist()
        self.modes: list[float] = coefficients["modes"].tolist()
        self.odds: list[float] = coefficients["odds"].tolist()
        self.log_failures: list[float] = coefficients["log_failures"].tolist()
        self.deviations: list[float] = coefficients["deviations"].tolist()
        self.bs: list[float] = coefficients["bs"].tolist()
        self.as_: list[float] = coefficients["as_"].tolist()

    def successes(self, index: int, units: Iterator[float]) -> float:
        """The number of successes of one element."""
        if self.are_many[index]:
            return self._successes_of_many(index, units)
        # From one success to the next is a geometric number of trials.
        count, log_failure = self.counts[index], self.log_failures[index]
        trials = 0.0
        successes = -1.0
        while trials <= count:
            successes += 1.0
            unit = next(units)
            trials += math.ceil(math.log(unit) / log_failure) if unit else math.inf
        return successes

    def _successes_of_many(self, index: int, units: Iterator[float]) -> float:
        count, centre, a, b = self.counts[index], self.centres[index], self.as_[index], self.bs[index]
        sure = 0.92 - 4.2 / b
        while True:
            u = next(units) - 0.5
            v = next(units)
            edge = 0.5 - abs(u)
            successes = math.floor((2 * a / edge + b) * u + centre) if edge else -1
            if not 0 <= successes <= count:
                continue
            if edge >= 0.07 and v <= sure:
                return successes
            hat = v * (2.83 + 5.1 / b) * self.deviations[index] / (a / (edge * edge) + b)
            if hat == 0 or math.log(hat) <= self._log_ratio(index, successes):
                return successes

    def _log_ratio(self, index: int, k: float) -> float:
        """The logarithm of the probability of `k` successes, relative to that of the most likely number."""
        count, mode, odds = self.counts[index], self.modes[index], self.odds[index]
        return (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + (_stirling_tail(mode) + _stirling_tail(count - mode) - _stirling_tail(k) - _stirling_tail(count - k))
        )


def _stirling_tail(k: float) -> float:
    if k <= 9:
        return STIRLING_TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


# Gamma ----------------------------------------------------------------------------------------------------------------


def gamma(shapes: Array, generator: Generator) -> Array:
    """Gamma distributed numbers of scale 1, by the method of Marsaglia and Tsang (2000)."""
    if name_of(shapes.dtype) not in ("float32", "float64"):
        raise not_implemented("gamma_cpu", shapes.dtype)
    smallest = np.finfo(shapes.dtype).tiny
    samples: Array = np.fmax(_gamma(shapes, generator).astype(shapes.dtype), smallest)
    return samples


def dirichlet(concentrations: Array, generator: Generator) -> Array:
    """Rows of positive numbers that sum to 1: gamma numbers, divided by their sum."""
    if name_of(concentrations.dtype) not in ("float32", "float64"):
        raise not_implemented("dirichlet", concentrations.dtype)
    parts = np.fmax(_gamma(concentrations.astype(np.float64), generator), np.finfo(np.float64).tiny)
    return shares_of(parts, concentrations.dtype)


def shares_of(parts: Array, dtype: np.dtype[Any]) -> Array:
    """Positive numbers divided by the sum of their row, in `dtype`, and between 0 and 1 there too."""
    limits = np.finfo(dtype)
    if parts.size and parts.ndim:
        rows = parts.reshape(-1, parts.shape[-1])
        sums = _sums_of_rows(rows) if rows.shape[1] <= 128 else rows.sum(1)
        parts = (rows / sums[:, None]).reshape(parts.shape)
    elif parts.size:
        parts = parts / parts
    shares: Array = np.clip(parts.astype(dtype), limits.tiny, 1 - limits.epsneg)
    return shares


def _sums_of_rows(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums in the order in which PyTorch's vectors of two add up rows of up to 128 numbers: four vectors at a time."""
    paired = rows.shape[1] - rows.shape[1] % 2
    vectors = rows[:, :paired].reshape(len(rows), -1, 2)
    fours = vectors.shape[1] - vectors.shape[1] % 4
    sums = np.zeros((len(rows), 4, 2))
    for start in range(0, fours, 4):
        sums += vectors[:, start : start + 4]
    for index in range(fours, vectors.shape[1]):
        sums[:, 0] += vectors[:, index]
    vector = sums[:, 0] + sums[:, 1] + sums[:, 2] + sums[:, 3]
    result: npt.NDArray[np.float64] = rows[:, paired:].sum(1) + vector[:, 0] + vector[:, 1]
    return result


def _gamma(shapes: Array, generator: Generator) -> npt.NDArray[np.float64]:
    """In float64; what depends on the shape alone is computed in the dtype of `shapes`."""
    one = shapes.dtype.type(1)
    below_one = shapes < 1
    boosted = np.where(below_one, shapes + one, shapes)
    d = (boosted - np.float32(1 / 3)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        c = 1.0 / np.sqrt(9.0 * d)
        exponents = (one / shapes).astype(np.float64)
    boosts, normals = _boosts_and_normals(shapes.ravel(), d.ravel(), c.ravel(), generator)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        root = normals.reshape(shapes.shape) * c + 1.0 if ON_X86_64 else fused(normals.reshape(shapes.shape), c, 1.0)
        scales = np.ones(shapes.shape)
        boosted_ones = below_one & (shapes > 0)
        # By Python's `pow`, which is the C library's; NumPy's is not always.
        scales[boosted_ones] = list(map(math.pow, boosts.reshape(shapes.shape)[boosted_ones], exponents[boosted_ones]))
        samples = scales * d * (root * root * root)
    return np.where(shapes == 0, 0.0, samples)


def _boosts_and_normals(shapes: Array, d: Array, c: Array, generator: Generator) -> tuple[Array, Array]:
    """For each shape below 1 a uniform number, and for each shape the normal number that is accepted."""
    boosts, normals = np.ones(shapes.size), np.zeros(shapes.size)
    with generator.one_by_one() as source:
        for index, (shape, d_of_one, c_of_one) in enumerate(zip(shapes.tolist(), d.tolist(), c.tolist(), strict=True)):
            if shape < 1 and shape != 0:
                boosts[index] = 1 - next(source.units)
            if shape != 0:
                normals[index] = _accepted_normal(d_of_one, c_of_one, source)
    return boosts, normals


_SQUEEZE = float(np.float32(0.0331))


def _accepted_normal(d: float, c: float, source: OneByOne) -> float:
    """The normal number whose cubed transform (1 + c x)^3 is a gamma number divided by d."""
    while True:
        x = source.normal()
        root = 1.0 + c * x
        if root <= 0:
            continue
        cube = root * root * root
        unit = 1 - next(source.units)
        square = x * x
        if unit < 1.0 - _SQUEEZE * square * square:
            return x
        if math.log(unit) < 0.5 * square + d * (1.0 - cube + math.log(cube)):
            return x
