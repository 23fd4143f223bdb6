"""Random numbers by methods that accept or reject: one element after the other, each from as many words as it takes.

The kernels read words that were drawn ahead. `progress` has how many words were used, how many elements are done, and
whether a normal number is waiting, which is in `waiting`. Where the words end within an element, that element is left
to the next call. Logarithms and their kin are the C library's: results are those of PyTorch bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ..arrays import Arguments, without_lock
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..types import F64, I64, float64
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


def _begin(b: Builder, arguments: Arguments, first: int) -> tuple[_Words, Value, Value]:
    """The words, the progress, and how many elements there are, from the arguments (words, progress, elements)."""
    words, progress = arguments.array(first), arguments.array(first + 1).data
    source = _Words(b, words.data, words.size(0), b.load_raw(progress, I64))
    return source, progress, arguments.integer(first + 2)


@kernel
def poisson_counts(b: Builder, arguments: Arguments) -> None:
    """(out, rates, words, progress, elements); rates are finite and not negative."""
    out, rates = (arguments.array(number).data for number in range(2))
    words, progress, count = _begin(b, arguments, 2)
    with without_lock(b), _elements(b, words, progress, count) as element:
        rate = b.load(rates, float64, element)
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
        b.store(out, float64, element, result.value)


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


TRIALS = ("counts", "are_many", "centres", "modes", "odds", "log_failures", "deviations", "bs", "as_")
"""The rows of the table of `binomial_successes`."""


@kernel
def binomial_successes(b: Builder, arguments: Arguments) -> None:
    """(out, table, tails, words, progress, elements): `tails` are Stirling's for 0 to 9."""
    out, table, tails = (arguments.array(number).data for number in range(3))
    words, progress, count = _begin(b, arguments, 3)
    with without_lock(b), _elements(b, words, progress, count) as element:
        row = {name: b.load(table, float64, count * number + element) for number, name in enumerate(TRIALS)}
        result = b.variable(F64, 0.0)
        with b.either(row["are_many"] != 0.0) as (many, few):
            with many:
                _successes_of_many(b, words, row, tails, result)
            with few:
                trials = b.variable(F64, 0.0)
                result.value = -1.0
                with b.repeat_while() as go_on_if:
                    go_on_if((trials.value <= row["counts"]) & (words.ended.value == 0))
                    result.add(1.0)
                    trials.add(b.ceil(_c(b, "log", words.unit()) / row["log_failures"]))
        b.store(out, float64, element, result.value)


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
def gamma_normals(b: Builder, arguments: Arguments) -> None:
    """(normals, boosts, shapes, d, c, threshold, words, progress, elements, waiting).

    For each shape the normal number whose cubed transform is accepted, and for shapes below 1 a uniform number.
    """
    out, boosts, shapes, ds, cs = (arguments.array(number).data for number in range(5))
    threshold = arguments.float64(5)
    words, progress, count = _begin(b, arguments, 6)
    waiting = arguments.array(9).data
    has = b.load_raw(b.offset(progress, 2, I64), I64)
    normals = _Normals(words, has, b.load(waiting, float64))
    with without_lock(b):
        with _elements(b, words, progress, count, normals) as element:
            shape, d, c = (b.load(each, float64, element) for each in (shapes, ds, cs))
            with b.when(shape != 0.0):
                with b.when(shape < 1.0):
                    b.store(boosts, float64, element, 1.0 - words.unit())
                x = b.variable(F64, 0.0)
                accepted = b.variable(I64, 0)
                with b.repeat_while() as go_on_if:
                    normals.into(x)
                    root = x.value * c + 1.0
                    with b.when(root > 0.0):
                        cube = root * root * root
                        unit = 1.0 - words.unit()
                        square = x.value * x.value
                        with b.either(unit < 1.0 - threshold * square * square) as (at_once, maybe):
                            with at_once:
                                accepted.value = 1
                            with maybe:
                                goal = square * 0.5 + d * (1.0 - cube + _c(b, "log", cube))
                                accepted.value = b.convert(_c(b, "log", unit) < goal, I64, False)
                    go_on_if((accepted.value == 0) & (words.ended.value == 0))
                b.store(out, float64, element, x.value)
        b.store_raw(normals.has.value, b.offset(progress, 2, I64))
        b.store(waiting, float64, 0, normals.waiting.value)
