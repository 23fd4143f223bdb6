"""Random numbers by methods that accept or reject: one element after the other, each from as many words as it takes.

The kernels read words that were drawn ahead. `progress` has how many words were used, how many elements are done,
whether a normal number is waiting, which is in `waiting`, and whether there is a parameter that the reference has to
look at: then nothing is done. Where the words end within an element, that element is left to the next call. Logarithms
and their kin are the C library's: results are those of PyTorch bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ..._core.process.processor import ON_X86_64
from ..arrays import Arguments, without_lock
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..types import F32, F64, I64, SCALARS, Scalar, float64
from .words import WORD


def _c(b: Builder, name: str, x: Value) -> Value:
    return b.call(name, F64, [x])


class _Words:
    """The words that were drawn ahead, taken two at a time."""

    def __init__(self, b: Builder, words: Value, count: Value, used: Value) -> None:
        self.b = b
        self.used = b.variable(I64, used)
        self.ended = b.variable(I64, 0)
        self._words = words
        self._count = count

    def unit(self) -> Value:
        """A number in [0, 1), a multiple of 2**-53; where the words have ended, any number."""
        b = self.b
        place = self.used.value
        fits = place + 2 <= self._count
        place = b.select(fits, place, 0)
        first, second = (b.convert(b.load(self._words, WORD, place + each), I64) for each in range(2))
        self.ended.value = b.select(fits, self.ended.value, 1)
        self.used.value = b.select(fits, place + 2, self.used.value)
        return b.convert(((first & 0x1FFFFF) << 32) | second, F64) * 2.0**-53


class _Normals:
    """Standard normal numbers, made in pairs; the second of a pair waits."""

    def __init__(self, words: _Words, has: Value, waiting: Value) -> None:
        self.words = words
        self.has = words.b.variable(I64, has)
        self.waiting = words.b.variable(F64, waiting)

    def into(self, target: Variable) -> None:
        """Store the next one."""
        b = self.words.b
        with b.either(self.has.value != 0) as (waiting, none):
            with waiting:
                target.value = self.waiting.value
                self.has.value = 0
            with none:
                theta = self.words.unit() * (2.0 * math.pi)
                length = b.sqrt(_c(b, "log1p", -self.words.unit()) * -2.0)
                self.waiting.value = length * _c(b, "sin", theta)
                target.value = length * _c(b, "cos", theta)
                self.has.value = 1


@contextmanager
def _elements(
    b: Builder, words: _Words, progress: Value, count: Value, normals: _Normals | None = None
) -> Iterator[Value]:
    """Go through the elements; the body stores a result for the one it is given."""
    done = b.variable(I64, b.load_raw(b.offset(progress, 1, I64), I64))
    with b.repeat_while() as go_on_if:
        go_on_if(done.value < count)
        used = words.used.value
        before = None if normals is None else (normals.has.value, normals.waiting.value)
        yield done.value
        with b.when(words.ended.value != 0):
            words.used.value = used
            if normals is not None and before is not None:
                normals.has.value, normals.waiting.value = before
        go_on_if(words.ended.value == 0)
        done.add(1)
    b.store_raw(words.used.value, b.offset(progress, 0, I64))
    b.store_raw(done.value, b.offset(progress, 1, I64))


def _begin(
    b: Builder, arguments: Arguments, first: int, is_ordinary: Callable[[Value], Value]
) -> tuple[_Words, Value, Value]:
    """The words, the progress, and how many elements there are, from the arguments (words, progress, elements).

    None, if there is an element for which `is_ordinary` does not hold.
    """
    words, progress, count = arguments.array(first), arguments.array(first + 1).data, arguments.integer(first + 2)
    all_ordinary = b.variable(I64, 1)
    with b.when(b.load_raw(b.offset(progress, 1, I64), I64) == 0), b.loop(0, count) as element:
        all_ordinary.value = all_ordinary.value & b.convert(is_ordinary(element), I64, False)
    b.store_raw(1 - all_ordinary.value, b.offset(progress, 3, I64))
    source = _Words(b, words.data, words.size(0), b.load_raw(progress, I64))
    return source, progress, b.select(all_ordinary.value == 1, count, 0)


@kernel
def poisson_counts(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, rates, words, progress, elements)."""
    scalar = SCALARS[dtype]
    out, rates = (arguments.array(number).data for number in range(2))

    def rate_of(element: Value) -> Value:
        return b.convert(b.load(rates, scalar, element), F64)

    words, progress, count = _begin(
        b, arguments, 2, lambda element: (rate_of(element) >= 0.0) & (rate_of(element) < math.inf)
    )
    with without_lock(b), _elements(b, words, progress, count) as element:
        rate = rate_of(element)
        result = b.variable(F64, 0.0)
        with b.either(rate >= 10.0) as (large, small):
            with large:
                _poisson_of_large_rate(b, words, rate, result)
            with small, b.when(rate > 0.0):
                limit = _c(b, "exp", -rate)
                product = b.variable(F64, words.unit())
                with b.repeat_while() as go_on_if:
                    go_on_if((product.value > limit) & (words.ended.value == 0))
                    result.add(1.0)
                    product.value = product.value * words.unit()
        b.store(out, scalar, element, b.convert(result.value, scalar.compute))


def _poisson_of_large_rate(b: Builder, words: _Words, rate: Value, result: Variable) -> None:
    slope = b.sqrt(rate) * 2.53 + 0.931
    a = slope * 0.02483 + -0.059
    sure = 0.9277 - 3.6224 / (slope - 2.0)
    accepted = b.variable(I64, 0)
    with b.repeat_while() as go_on_if:
        u = words.unit() - 0.5
        v = words.unit()
        edge = 0.5 - b.abs(u)
        # At the very edge the count is a huge negative number.
        count = b.select(edge == 0.0, -1.0, b.floor((a * 2.0 / edge + slope) * u + rate + 0.43))
        result.value = count
        with b.either((edge >= 0.07) & (v <= sure)) as (at_once, maybe):
            with at_once:
                accepted.value = 1
            with maybe, b.when((count >= 0.0) & ((edge >= 0.013) | (v <= edge))):
                start = _c(b, "log", v) + _c(b, "log", 1.1328 / (slope - 3.4) + 1.1239)
                hat = start - _c(b, "log", a / (edge * edge) + slope)
                goal = -rate + count * _c(b, "log", rate) - _c(b, "lgamma", count + 1.0)
                accepted.value = b.convert(hat <= goal, I64, False)
        go_on_if((accepted.value == 0) & (words.ended.value == 0))


@kernel
def binomial_successes(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, counts, chances, tails, words, progress, elements): `tails` are Stirling's for 0 to 9."""
    scalar = SCALARS[dtype]
    out, counts, chances, tails = (arguments.array(number).data for number in range(4))

    def is_ordinary(element: Value) -> Value:
        trials, chance = b.load(counts, scalar, element), b.load(chances, scalar, element)
        return (trials < math.inf) & (trials > -math.inf) & (chance >= 0.0) & (chance <= 1.0)

    words, progress, count = _begin(b, arguments, 4, is_ordinary)
    with without_lock(b), _elements(b, words, progress, count) as element:
        trials, chance = b.load(counts, scalar, element), b.load(chances, scalar, element)
        often = chance > 0.5
        rare = b.select(often, 1.0 - chance, chance)
        result = b.variable(F64, 0.0)
        with b.when((trials > 0.0) & (rare > 0.0)):
            row = _coefficients(b, trials, rare, scalar)
            with b.either(trials * rare >= 10.0) as (many, few):
                with many:
                    _successes_of_many(b, words, row, tails, result)
                with few:
                    # From one success to the next is a geometric number of trials.
                    tried = b.variable(F64, 0.0)
                    result.value = -1.0
                    with b.repeat_while() as go_on_if:
                        go_on_if((tried.value <= row["counts"]) & (words.ended.value == 0))
                        result.add(1.0)
                        tried.add(b.ceil(_c(b, "log", words.unit()) / row["log_failures"]))
        successes = b.convert(result.value, scalar.compute)
        b.store(out, scalar, element, b.select(often & (trials > 0.0), trials - successes, successes))


def _coefficients(b: Builder, counts: Value, chances: Value, scalar: Scalar) -> dict[str, Value]:
    """What the methods need: a part of it in the precision of the parameters."""
    rest = 1.0 - chances
    log1p = "log1pf" if scalar.compute == F32 else "log1p"
    in_their_own = {
        "counts": counts,
        "centres": counts * chances,
        "modes": b.floor((counts + 1.0) * chances),
        "odds": chances / rest,
        "log_failures": b.call(log1p, scalar.compute, [-chances]),
        "deviations": b.sqrt(counts * chances * rest),
        "shift": chances * 0.01,
    }
    row = {name: b.convert(value, F64) for name, value in in_their_own.items()}
    row["centres"] = row["centres"] + 0.5
    row["bs"] = row["deviations"] * 2.53 + 1.15
    row["as_"] = row["bs"] * 0.0248 + -0.0873 + row["shift"]
    return row


def _successes_of_many(b: Builder, words: _Words, row: dict[str, Value], tails: Value, result: Variable) -> None:
    a, slope = row["as_"], row["bs"]
    sure = 0.92 - 4.2 / slope
    accepted = b.variable(I64, 0)
    with b.repeat_while() as go_on_if:
        u = words.unit() - 0.5
        v = words.unit()
        edge = 0.5 - b.abs(u)
        successes = b.select(edge == 0.0, -1.0, b.floor((a * 2.0 / edge + slope) * u + row["centres"]))
        result.value = successes
        possible = (successes >= 0.0) & (successes <= row["counts"])
        with b.either((edge >= 0.07) & (v <= sure)) as (at_once, maybe):
            with at_once:
                accepted.value = b.convert(possible, I64, False)
            with maybe, b.when(possible):
                hat = v * (5.1 / slope + 2.83) * row["deviations"] / (a / (edge * edge) + slope)
                ratio = _log_ratio(b, row, tails, successes)
                accepted.value = b.convert(_c(b, "log", hat) <= ratio, I64, False)
        go_on_if((accepted.value == 0) & (words.ended.value == 0))


def _log_ratio(b: Builder, row: dict[str, Value], tails: Value, k: Value) -> Value:
    """The logarithm of the probability of `k` successes, relative to that of the most likely number."""
    count, mode, odds = row["counts"], row["modes"], row["odds"]

    def tail(number: Value) -> Value:
        square = (number + 1.0) * (number + 1.0)
        far = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (number + 1.0)
        near = b.load(tails, float64, b.convert(b.smaller(number, 9.0), I64))
        return b.select(number <= 9.0, near, far)

    return (
        (mode + 0.5) * _c(b, "log", (mode + 1.0) / (odds * (count - mode + 1.0)))
        + (count + 1.0) * _c(b, "log", (count - mode + 1.0) / (count - k + 1.0))
        + (k + 0.5) * _c(b, "log", odds * (count - k + 1.0) / (k + 1.0))
        + (tail(mode) + tail(count - mode) - tail(k) - tail(count - k))
    )


@kernel
def gamma_numbers(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, shapes, smallest, words, progress, elements, waiting), by the method of Marsaglia and Tsang (2000)."""
    scalar = SCALARS[dtype]
    out, shapes = (arguments.array(number).data for number in range(2))
    smallest = b.convert(arguments.float64(2), scalar.compute)

    def is_ordinary(element: Value) -> Value:
        shape = b.load(shapes, scalar, element)
        return (shape >= 0.0) & (shape < math.inf)

    words, progress, count = _begin(b, arguments, 3, is_ordinary)
    waiting = arguments.array(6).data
    has = b.load_raw(b.offset(progress, 2, I64), I64)
    normals = _Normals(words, has, b.load(waiting, float64))
    with without_lock(b):
        with _elements(b, words, progress, count, normals) as element:
            shape = b.load(shapes, scalar, element)
            result = b.variable(F64, 0.0)
            with b.when(shape != 0.0):
                boosted = b.select(shape < 1.0, shape + 1.0, shape)
                d = b.convert(boosted - _THIRD, F64)
                c = 1.0 / b.sqrt(d * 9.0)
                scale = b.variable(F64, 1.0)
                with b.when(shape < 1.0):
                    exponent = b.convert(1.0 / shape, F64)
                    scale.value = b.call("pow", F64, [1.0 - words.unit(), exponent])
                x = b.variable(F64, 0.0)
                _accepted_normal(b, words, normals, x, d, c)
                root = x.value * c + 1.0 if ON_X86_64 else b.fma(x.value, c, 1.0)
                result.value = scale.value * d * (root * root * root)
            rounded = b.convert(result.value, scalar.compute)
            b.store(out, scalar, element, b.select(rounded > smallest, rounded, smallest))
        b.store_raw(normals.has.value, b.offset(progress, 2, I64))
        b.store(waiting, float64, 0, normals.waiting.value)


_THIRD = float(np.float32(1 / 3))
_SQUEEZE = float(np.float32(0.0331))


def _accepted_normal(b: Builder, words: _Words, normals: _Normals, x: Variable, d: Value, c: Value) -> None:
    """The normal number whose cubed transform (1 + c x)^3 is a gamma number divided by d."""
    accepted = b.variable(I64, 0)
    with b.repeat_while() as go_on_if:
        normals.into(x)
        root = x.value * c + 1.0
        with b.when(root > 0.0):
            cube = root * root * root
            unit = 1.0 - words.unit()
            square = x.value * x.value
            with b.either(unit < 1.0 - square * _SQUEEZE * square) as (at_once, maybe):
                with at_once:
                    accepted.value = 1
                with maybe:
                    goal = square * 0.5 + d * (1.0 - cube + _c(b, "log", cube))
                    accepted.value = b.convert(_c(b, "log", unit) < goal, I64, False)
        go_on_if((accepted.value == 0) & (words.ended.value == 0))


@kernel
def shares_of_rows(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, parts, rows, columns, smallest, largest): numbers of float64, divided by the sums of their rows.

    Sums are in the order in which PyTorch's vectors of two add up short rows: four vectors at a time.
    """
    scalar = SCALARS[dtype]
    out, parts = (arguments.array(number).data for number in range(2))
    rows, columns = (arguments.integer(number) for number in range(2, 4))
    smallest, largest = (b.convert(arguments.float64(number), scalar.compute) for number in range(4, 6))
    vectors = columns // 2
    fours = vectors // 4 * 4
    with b.loop(0, rows) as row:
        line = b.at(parts, float64, row * columns)
        sums = [b.variable(F64, 0.0, 2) for _ in range(4)]
        with b.loop(0, fours, 4) as start:
            for number, total in enumerate(sums):
                total.add(b.load(line, float64, (start + number) * 2, 2))
        with b.loop(fours, vectors) as vector:
            sums[0].add(b.load(line, float64, vector * 2, 2))
        pair = sums[0].value + sums[1].value + sums[2].value + sums[3].value
        odd = b.variable(F64, 0.0)
        with b.when(columns > vectors * 2):
            odd.value = b.load(line, float64, columns - 1)
        whole = odd.value + b.lane(pair, 0) + b.lane(pair, 1)
        with b.loop(0, columns) as column:
            share = b.convert(b.load(line, float64, column) / whole, scalar.compute)
            share = b.select(share > smallest, share, smallest)
            b.store(out, scalar, row * columns + column, b.select(share < largest, share, largest))


@kernel
def cumulative_chances(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, weights, wrong, rows, columns): running sums of rows over their last, in float64.

    `wrong`, of int64, becomes 1 where a weight is negative, infinite or no number, or all of a row are zero.
    """
    scalar = SCALARS[dtype]
    out, weights, wrong = (arguments.array(number).data for number in range(3))
    rows, columns = (arguments.integer(number) for number in range(3, 5))
    with b.loop(0, rows) as row:
        total = b.variable(scalar.compute, 0.0)
        ordinary = b.variable(I64, 1)
        with b.loop(0, columns) as column:
            weight = b.load(weights, scalar, row * columns + column)
            ordinary.value = ordinary.value & b.convert((weight >= 0.0) & (weight < math.inf), I64, False)
            total.value = total.value + weight
            b.store(out, float64, row * columns + column, b.convert(total.value, F64))
        whole = total.value
        with b.when((ordinary.value == 0) | (whole <= 0.0) | (whole != whole)):
            b.store_raw(1, wrong, I64)
        with b.loop(row * columns, (row + 1) * columns) as place:
            share = b.convert(b.load(out, float64, place), scalar.compute) / whole
            b.store(out, float64, place, b.convert(share, F64))


@kernel
def chosen_places(b: Builder, arguments: Arguments) -> None:
    """(out, cumulative, words, rows, columns, draws): where the number of two words falls among a row's sums."""
    captured = [arguments.array(number).data for number in range(3)]
    rows, columns, draws = (arguments.integer(number) for number in range(3, 6))
    with b.parallel(rows * draws, _DRAWS, *captured, columns, draws, unlock=True) as (c, begin, end, inside):
        out, cumulative, words, columns_, draws_ = inside
        with c.loop(begin, end) as number:
            line = c.at(cumulative, float64, number // draws_ * columns_)
            first, second = (c.convert(c.load(words, WORD, number * 2 + each), I64) for each in range(2))
            unit = c.convert(((first & 0x1FFFFF) << 32) | second, F64) * 2.0**-53
            low, high = c.variable(I64, 0), c.variable(I64, columns_)
            with c.repeat_while() as go_on_if:
                go_on_if(low.value < high.value)
                middle = (low.value + high.value) // 2
                below = c.load(line, float64, middle) < unit
                low.value, high.value = c.select(below, middle + 1, low.value), c.select(below, high.value, middle)
            c.store(out, SCALARS["int64"], number, low.value)


_DRAWS = 1024
"""One thread makes at least so many draws."""
