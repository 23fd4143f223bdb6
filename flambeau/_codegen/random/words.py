"""Kernels of random numbers: the words of mt19937, block by block, coins thrown with them, and normal numbers."""

from __future__ import annotations

import math

import numpy as np

from ..._core.random import normal_polynomials
from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS
from ..types import F32, F64, I32, I64, SCALARS, Scalar

BLOCK = 624
_DISTANCE = 397
"""A word of a block is made of the old one there, the next one, and the one so far ahead, around the end."""
_WIDTH = 16

WORD = Scalar("uint32", I32, I32, 4, False, False)
INT64 = SCALARS["int64"]


def _constant(b: Builder, bits: int) -> Value:
    return Value(b, b.constant(I32, bits - 2**32 if bits >= 2**31 else bits).ir, False)


def _twisted(b: Builder, this: Value, following: Value, ahead: Value) -> Value:
    both = (this & _constant(b, 0x80000000)) | (following & _constant(b, 0x7FFFFFFF))
    odd = -(both & _constant(b, 1))  # all bits, or none
    return ahead ^ (both >> _constant(b, 1)) ^ (odd & _constant(b, 0x9908B0DF))


def _tempered(b: Builder, word: Value) -> Value:
    word = word ^ (word >> _constant(b, 11))
    word = word ^ ((word << _constant(b, 7)) & _constant(b, 0x9D2C5680))
    word = word ^ ((word << _constant(b, 15)) & _constant(b, 0xEFC60000))
    return word ^ (word >> _constant(b, 18))


@kernel
def mersenne_blocks(b: Builder, arguments: Arguments) -> None:
    """(out, state, blocks): the next blocks of words after a state, which moves on."""
    out, state = (arguments.array(number).data for number in range(2))
    blocks = arguments.integer(2)
    with without_lock(b), b.loop(0, blocks) as block:
        target = b.at(out, WORD, block * BLOCK)

        def step(position: Value, lanes: int, ahead: int, target: Value = target) -> None:
            this, following = (b.load(state, WORD, position + each, lanes) for each in range(2))
            new = _twisted(b, this, following, b.load(state, WORD, position + ahead, lanes))
            b.store(state, WORD, position, new)
            b.store(target, WORD, position, _tempered(b, new))

        for position, lanes in b.lanes(0, BLOCK - _DISTANCE, _WIDTH):
            step(position, lanes, _DISTANCE)
        for position, lanes in b.lanes(BLOCK - _DISTANCE, BLOCK - 1, _WIDTH):
            step(position, lanes, _DISTANCE - BLOCK)
        last = b.integer(BLOCK - 1)
        new = _twisted(
            b, b.load(state, WORD, last), b.load(state, WORD, 0), b.load(state, WORD, last + (_DISTANCE - BLOCK))
        )
        b.store(state, WORD, last, new)
        b.store(target, WORD, last, _tempered(b, new))


@kernel
def shuffled(b: Builder, arguments: Arguments) -> None:
    """(out, words, count): 0, 1, 2, ..., of which each is swapped in turn with one that follows, or with itself."""
    out, words = (arguments.array(number).data for number in range(2))
    count = arguments.integer(2)
    with without_lock(b):
        with b.loop(0, count) as position:
            b.store(out, INT64, position, position)
        with b.loop(0, count - 1) as position:
            choices = b.convert(count - position, I32, False)
            step = b.load(words, WORD, position) % choices
            partner = position + b.convert(step, I64, False)
            here, there = b.load(out, INT64, position), b.load(out, INT64, partner)
            b.store(out, INT64, position, there)
            b.store(out, INT64, partner, here)


@kernel
def coins(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, words, count, high, low).

    Two words are a number of 53 bits, the low 21 bits of the first one being the high ones. `out` gets one where it is
    below the number that `high` and `low` are, else zero.
    """
    scalar = SCALARS[dtype]
    out, words = (arguments.array(number).data for number in range(2))
    count, high, low = (arguments.integer(number) for number in range(2, 5))
    captured = [out, words, b.convert(high, I32, False), b.convert(low, I32, False)]
    with b.parallel(count, ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        out_, words_, high_, low_ = inside
        for position, lanes in c.lanes(begin, end, 8 if scalar.compute == F64 else _WIDTH):
            if lanes == 1:
                first, second = (c.load(words_, WORD, position * 2 + each) for each in range(2))
            else:
                pairs = c.load(words_, WORD, position * 2, lanes * 2)
                first, second = (c.shuffle(pairs, None, range(each, lanes * 2, 2)) for each in range(2))
            first = first & _constant(c, 0x1FFFFF)
            below = (first < high_) | ((first == high_) & (second < low_))
            c.store(out_, scalar, position, c.convert(below, scalar.compute))


@kernel
def c_function(b: Builder, arguments: Arguments, name: str) -> None:
    """(out, x, count): a function of the C library, of each float64 number."""
    scalar = SCALARS["float64"]
    out, x = (arguments.array(number).data for number in range(2))
    with b.parallel(arguments.integer(2), ELEMENTS // 4, out, x, unlock=True) as (c, begin, end, (out_, x_)):
        for position, _ in c.lanes(begin, end, 1):
            c.store(out_, scalar, position, c.call(name, F64, [c.load(x_, scalar, position)]))


@kernel
def normals_by_polynomials(b: Builder, arguments: Arguments, of_words: bool) -> None:
    """(out, source, blocks, mean, std): normal numbers from blocks of 8 words for the radii and 8 for the angles.

    Or from float32 numbers in [0, 1) that were made of such words. The same bits as
    `_core/random/normal_polynomials.py`, which explains them.
    """
    scalar = SCALARS["float32"]
    out, source = (arguments.array(number).data for number in range(2))
    captured = [out, source, arguments.float32(3), arguments.float32(4)]
    with b.parallel(arguments.integer(2), ELEMENTS // 64, *captured, unlock=True) as (c, begin, end, inside):
        out_, source_, mean, std = inside

        def units(position: Value) -> Value:
            if not of_words:
                return c.load(source_, scalar, position, 8)
            return c.convert(c.load(source_, WORD, position, 8) & 0xFFFFFF, F32) * 2.0**-24

        with c.loop(begin, end) as block:
            first, second = block * 16, block * 16 + 8
            radius = c.sqrt(_logarithm(c, -units(first) + 1.0) * -2.0)
            sine, cosine = _sine_and_cosine(c, units(second) * _single(c, 2 * math.pi))
            c.store(out_, scalar, first, c.fma(radius * cosine, std, mean))
            c.store(out_, scalar, second, c.fma(radius * sine, std, mean))


def _single(b: Builder, number: float) -> Value:
    return b.constant(F32, float(np.float32(number)))


def _polynomial(b: Builder, coefficients: tuple[float, ...], x: Value) -> Value:
    value = b.splat(_single(b, coefficients[0]), x.lanes)
    for coefficient in coefficients[1:]:
        value = b.fma(value, x, _single(b, coefficient))
    return value


def _logarithm(b: Builder, x: Value) -> Value:
    bits = b.bits(x, I32)
    part = b.bits((bits & 0x7FFFFF) | 0x3F000000, F32)
    low = part < _single(b, math.sqrt(0.5))
    exponent = b.convert((bits >> 23) - 126, F32) - b.convert(low, F32)
    part = (part - 1.0) + b.select(low, part, 0.0)
    square = part * part
    high, rest = (_single(b, each) for each in normal_polynomials.LOG_2)
    value = b.fma(_polynomial(b, normal_polynomials.LOGARITHM, part) * part, square, exponent * rest)
    return part + (value - square * 0.5) + exponent * high


def _sine_and_cosine(b: Builder, angle: Value) -> tuple[Value, Value]:
    octant = (b.convert(angle * _single(b, 4 / math.pi), I32) + 1) & -2
    turns = b.convert(octant, F32)
    high, middle, low = (_single(b, each) for each in normal_polynomials.QUARTER_PI)
    rest = b.fma(turns, -low, angle - turns * high - turns * middle)
    square = rest * rest
    sine = b.fma(_polynomial(b, normal_polynomials.SINE, square) * square, rest, rest)
    cosine = b.fma(_polynomial(b, normal_polynomials.COSINE, square) * square, square, square * -0.5) + 1.0
    swapped = (octant & 2) != 0
    first, second = b.select(swapped, cosine, sine), b.select(swapped, sine, cosine)
    return b.select((octant & 4) != 0, -first, first), b.select(((octant + 2) & 4) != 0, -second, second)
