"""Kernels of distributions: numbers straight from the words of a generator, with the C library's functions.

The same bits as `_core/random/sampling.py`, which explains them; here is one loop in place of a dozen calls of NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS
from ..types import F32, F64, I64, SCALARS
from .words import WORD

Formula = Callable[[Builder, Value, Value, Value], Value]
"""A number from one in [0, 1) and two parameters, all float64."""


def _of_c(b: Builder, name: str, x: Value) -> Value:
    return b.call(name, F64, [x])


FORMULAS: dict[str, Formula] = {
    "exponential": lambda b, unit, scale, _: _of_c(b, "log1p", -unit) * scale,
    "cauchy": lambda b, unit, median, sigma: b.fma(_of_c(b, "tan", (unit - 0.5) * math.pi), sigma, median),
    "geometric": lambda b, unit, logarithm, _: b.ceil(_of_c(b, "log", unit) / logarithm),
}


def _unit(b: Builder, words: Value, position: Value) -> Value:
    """A float64 number in [0, 1): 53 bits of two words."""
    high, low = (b.convert(b.load(words, WORD, position * 2 + each), I64, False) for each in range(2))
    return b.convert(((high & 0x1FFFFF) << 32) | low, F64) * 2.0**-53


@kernel
def drawn(b: Builder, arguments: Arguments, distribution: str, dtype: str) -> None:
    """(out, words, count, first, second): numbers of a distribution, of two words each."""
    scalar = SCALARS[dtype]
    out, words = (arguments.array(number).data for number in range(2))
    captured = [out, words, arguments.float64(3), arguments.float64(4)]
    with b.parallel(arguments.integer(2), ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        out_, words_, first, second = inside
        with c.loop(begin, end) as position:
            number = FORMULAS[distribution](c, _unit(c, words_, position), first, second)
            c.store(out_, scalar, position, c.convert(number, scalar.compute))


@kernel
def uniform_between(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, words, count, low, high): numbers in [low, high), of one word each in float32, of two in float64."""
    scalar = SCALARS[dtype]
    out, words = (arguments.array(number).data for number in range(2))
    low, high = (b.convert(arguments.float64(number), scalar.compute) for number in (3, 4))
    captured = [out, words, low, high, high - low]
    with b.parallel(arguments.integer(2), ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        out_, words_, low_, high_, width = inside
        with c.loop(begin, end) as position:
            if dtype == "float32":
                unit = c.convert(c.load(words_, WORD, position) & 0xFFFFFF, F32) * 2.0**-24
            else:
                unit = _unit(c, words_, position)
            number = c.fma(unit, width, low_)
            # Rounding may have reached the upper end, which does not belong to the range.
            c.store(out_, scalar, position, c.select(number == high_, low_, number))


@kernel
def coins_of_chances(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, chances, words, count): one where the number of a word, in float64 of two, is below the chance, or zero."""
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(3)]
    with b.parallel(arguments.integer(3), ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        out, chances, words = inside
        with c.loop(begin, end) as position:
            if dtype == "float32":
                unit = c.convert(c.load(words, WORD, position) & 0xFFFFFF, F32) * 2.0**-24
            else:
                unit = _unit(c, words, position)
            below = unit < c.load(chances, scalar, position)
            c.store(out, scalar, position, c.convert(below, scalar.compute))


@kernel
def whole_between(b: Builder, arguments: Arguments) -> None:
    """(out, words, count, low, choices): whole numbers from `low` on in int64, of one word each."""
    out, words = (arguments.array(number).data for number in range(2))
    captured = [out, words, arguments.integer(3), arguments.integer(4)]
    with b.parallel(arguments.integer(2), ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        out_, words_, low, choices = inside
        with c.loop(begin, end) as position:
            word = c.convert(c.load(words_, WORD, position), I64, False)
            c.store(out_, SCALARS["int64"], position, word % choices + low)


@kernel
def normals_in_pairs(b: Builder, arguments: Arguments, dtype: str, exponential: bool) -> None:
    """(out, words, count, mean, std, spare, begin, waiting): normal numbers, or their exponential function.

    Four words give two numbers. Where `begin` is 1, `waiting` is the first one; `spare`, a float64 array, gets the
    second one of the last pair if that is one too many.
    """
    scalar, float64 = SCALARS[dtype], SCALARS["float64"]
    out, words = (arguments.array(number).data for number in range(2))
    count, begin = arguments.integer(2), arguments.integer(6)
    mean, std = (arguments.float64(number) for number in (3, 4))
    spare = arguments.array(5).data

    def store(c: Builder, target: Value, position: Value, standard: Value, mean: Value, std: Value) -> None:
        number = c.fma(standard, std, mean)
        if exponential:
            number = _of_c(c, "exp", number)
        c.store(target, scalar, position, c.convert(number, scalar.compute))

    with b.when(begin == 1):
        store(b, out, b.integer(0), arguments.float64(7), mean, std)
    pairs = (count - begin + 1) // 2
    captured = [out, words, count, begin, mean, std, spare]
    with b.parallel(pairs, ELEMENTS // 4, *captured, unlock=True) as (c, first, last, inside):
        out_, words_, count_, begin_, mean_, std_, spare_ = inside
        with c.loop(first, last) as pair:
            theta = _unit(c, words_, pair * 2) * (2.0 * math.pi)
            length = c.sqrt(_of_c(c, "log1p", -_unit(c, words_, pair * 2 + 1)) * -2.0)
            here = pair * 2 + begin_
            store(c, out_, here, length * _of_c(c, "cos", theta), mean_, std_)
            second = length * _of_c(c, "sin", theta)
            with c.either(here + 1 < count_) as (fits, is_left):
                with fits:
                    store(c, out_, here + 1, second, mean_, std_)
                with is_left:
                    c.store(spare_, float64, 0, second)
