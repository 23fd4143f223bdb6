"""Fourier transforms of rows, several of them side by side in the lanes of vectors.

A transform of n points is a sequence of passes, one for each factor of n. A pass joins shorter transforms, as many
as its factor says, by a few additions each time, and leaves its results where the next one wants them (Stockham's
order), in other memory. Before the first pass rows become lanes: a point is then a vector of real and one of imaginary
parts. Lanes do not meet, so a row has the same result whatever lies beside it.

An even number of real ones is transformed as half as many complex ones: those at even places are the real parts, those
at odd places the imaginary ones. The spectra of both are told apart by their symmetry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..machine.engine import engine
from ..shares import ELEMENTS, steps_worth
from ..types import I64, POINTER, SCALARS, Scalar
from .shared import scratch

COMPLEX, REAL, HALF = "complex", "real", "half"
"""What a row is given as: complex numbers, real ones, or half of a Hermitian spectrum, whose transform is real."""


@dataclass(frozen=True)
class Complex:
    """Complex numbers, one in each lane."""

    real: Value
    imag: Value

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def times(self, factor: float) -> Complex:
        return Complex(self.real * factor, self.imag * factor)

    def conjugate(self) -> Complex:
        return Complex(self.real, -self.imag)

    def turned_back(self) -> Complex:
        """Times -i: a quarter turn."""
        return Complex(self.imag, -self.real)


# ----- passes ---------------------------------------------------------------------------------------------------------


def _of_two(x: Sequence[Complex]) -> list[Complex]:
    return [x[0] + x[1], x[0] - x[1]]


def _of_three(x: Sequence[Complex]) -> list[Complex]:
    both = x[1] + x[2]
    middle = x[0] - both.times(0.5)
    aside = (x[1] - x[2]).times(math.sqrt(0.75)).turned_back()
    return [x[0] + both, middle + aside, middle - aside]


def _of_four(x: Sequence[Complex]) -> list[Complex]:
    even, odd = x[0] + x[2], x[1] + x[3]
    apart, aside = x[0] - x[2], (x[1] - x[3]).turned_back()
    return [even + odd, apart + aside, even - odd, apart - aside]


def _of_five(x: Sequence[Complex]) -> list[Complex]:
    near, far = x[1] + x[4], x[2] + x[3]
    (cosine, cosine2), (sine, sine2) = (
        [function(2 * math.pi * turn / 5) for turn in (1, 2)] for function in (math.cos, math.sin)
    )
    middles = [x[0] + near.times(a) + far.times(b) for a, b in ((cosine, cosine2), (cosine2, cosine))]
    near_apart, far_apart = x[1] - x[4], x[2] - x[3]
    asides = [
        (near_apart.times(sine) + far_apart.times(sine2)).turned_back(),
        (near_apart.times(sine2) - far_apart.times(sine)).turned_back(),
    ]
    return [
        x[0] + (near + far),
        middles[0] + asides[0],
        middles[1] + asides[1],
        middles[1] - asides[1],
        middles[0] - asides[0],
    ]


def _of_eight(x: Sequence[Complex]) -> list[Complex]:
    even, odd = _of_four(x[::2]), _of_four(x[1::2])
    aside = [odd[0], odd[1] + odd[1].turned_back(), odd[2].turned_back(), odd[3].turned_back() - odd[3]]
    aside[1::2] = [each.times(math.sqrt(0.5)) for each in aside[1::2]]
    return [*map(Complex.__add__, even, aside), *map(Complex.__sub__, even, aside)]


_TRANSFORMS: dict[int, Callable[[Sequence[Complex]], list[Complex]]] = {
    2: _of_two, 3: _of_three, 4: _of_four, 5: _of_five, 8: _of_eight,
}  # fmt: skip
"""By number of points, transforms that are written out."""


def radices() -> list[int]:
    """The factors that a pass may have: so many points have to find room in the registers."""
    most = 8 if engine().register_bytes == 64 else 5
    return [each for each in _TRANSFORMS if each <= most]


@dataclass(frozen=True)
class Block:
    """Points in memory: of each the vector of one part and that of the other; `first` says where the real one is.

    Backward transforms are forward ones with the parts exchanged.
    """

    c: Builder
    scalar: Scalar
    lanes: int
    first: Value

    def load(self, memory: Value, point: Value) -> Complex:
        real, imag = (self.c.load(memory, self.scalar, place, self.lanes) for place in self._places(point))
        return Complex(real, imag)

    def store(self, memory: Value, point: Value, value: Complex) -> None:
        for place, part in zip(self._places(point), (value.real, value.imag), strict=True):
            self.c.store(memory, self.scalar, place, part)

    def _places(self, point: Value) -> tuple[Value, Value]:
        pair = point * 2
        return (pair + self.first) * self.lanes, (pair + 1 - self.first) * self.lanes


def _pass(block: Block, radix: int, source: Value, target: Value, turns: Value, count: Value, step: Value) -> None:
    """Join `radix` transforms each, `count` times; `step` points are neighbours that are treated alike."""
    c, scalar = block.c, block.scalar
    for begin, end, weighed in ((c.integer(0), c.integer(1), False), (c.integer(1), count, True)):
        with c.loop(begin, end) as number:
            weights: list[Complex] = []
            if weighed:  # those of the first are 1
                place = number * (2 * (radix - 1))
                parts = [c.load(turns, scalar, place + each) for each in range(2 * (radix - 1))]
                weights = [Complex(*parts[each : each + 2]) for each in range(0, len(parts), 2)]
            with c.loop(0, step) as neighbour:
                given = [block.load(source, (number + count * each) * step + neighbour) for each in range(radix)]
                for each, value in enumerate(_TRANSFORMS[radix](given)):
                    if weighed and each:
                        value = _product(c, value, weights[each - 1])
                    block.store(target, (number * radix + each) * step + neighbour, value)


def _all_passes(
    block: Block, memory: Value, size: Value, factors: Value, turns: Value, points: Value, passes: Value
) -> Value:
    """Transform what stands in `memory`, with as much room, `size` numbers, behind it; where the result stands."""
    c, scalar = block.c, block.scalar
    here, there = c.variable(POINTER, memory), c.variable(POINTER, c.at(memory, scalar, size))
    count, step, weights = c.variable(I64, points), c.variable(I64, 1), c.variable(POINTER, turns)
    with c.loop(0, passes) as position:
        radix = c.load(factors, SCALARS["int64"], position)
        source, target, joined, turn, neighbours = (
            here.value, there.value, count.value // radix, weights.value, step.value,
        )  # fmt: skip
        for each in radices():
            with c.when(radix == each):
                _pass(block, each, source, target, turn, joined, neighbours)
        here.value, there.value = target, source
        count.value, step.value = joined, neighbours * radix
        weights.value = c.at(turn, scalar, joined * (radix - 1) * 2)
    return here.value


def _product(c: Builder, value: Complex, weight: Complex) -> Complex:
    return Complex(
        c.fma(value.real, weight.real, -(value.imag * weight.imag)),
        c.fma(value.real, weight.imag, value.imag * weight.real),
    )


# ----- rows as lanes --------------------------------------------------------------------------------------------------


def turned(c: Builder, vectors: list[Value]) -> list[Value]:
    """The columns of as many vectors as each has lanes."""
    lanes = len(vectors)
    low = [lane // 2 + lanes * (lane % 2) for lane in range(lanes)]
    for _ in range(lanes.bit_length() - 1):
        pairs = list(zip(vectors[: lanes // 2], vectors[lanes // 2 :], strict=True))
        vectors = [
            c.shuffle(first, second, [lane + half for lane in low])
            for first, second in pairs
            for half in (0, lanes // 2)
        ]
    return vectors


def _read(c: Builder, scalar: Scalar, given: str, starts: list[Value], memory: Value, width: Value) -> None:
    """Bring rows of `width` numbers into lanes; real ones get imaginary parts, which are zero."""
    lanes, step = len(starts), 2 if given == REAL else 1
    zero = c.splat(c.constant(scalar.compute, 0.0), lanes)
    for column, wide in c.lanes(0, width, lanes):
        vectors = [c.load(start, scalar, column, wide) for start in starts]
        columns = turned(c, vectors) if wide == lanes else [c.gathered(vectors)]
        for number, vector in enumerate(columns):
            c.store(memory, scalar, (column + number) * (step * lanes), vector)
            if given == REAL:
                c.store(memory, scalar, ((column + number) * 2 + 1) * lanes, zero)


def _mirror(block: Block, memory: Value, points: Value) -> None:
    """Complete a Hermitian spectrum; what has no partner is real."""
    c, scalar, lanes = block.c, block.scalar, block.lanes
    zero = c.splat(c.constant(scalar.compute, 0.0), lanes)
    c.store(memory, scalar, lanes, zero)
    with c.when(points % 2 == 0):
        c.store(memory, scalar, (points + 1) * lanes, zero)
    with c.loop(points // 2 + 1, points) as point:
        partner = (points - point) * 2
        c.store(memory, scalar, point * (2 * lanes), c.load(memory, scalar, partner * lanes, lanes))
        c.store(memory, scalar, (point * 2 + 1) * lanes, -c.load(memory, scalar, (partner + 1) * lanes, lanes))


def _told_apart(block: Block, memory: Value, turns: Value, middle: Value) -> None:
    """The spectrum of reals, up to its `middle`, in place of that of pairs of them; `turns` are roots of unity."""
    c, scalar = block.c, block.scalar
    pair = block.load(memory, c.integer(0))
    zero = c.splat(c.constant(scalar.compute, 0.0), block.lanes)
    block.store(memory, c.integer(0), Complex(pair.real + pair.imag, zero))
    block.store(memory, middle, Complex(pair.real - pair.imag, zero))
    with c.loop(1, middle // 2 + 1) as point:
        one, other = block.load(memory, point), block.load(memory, middle - point).conjugate()
        even = (one + other).times(0.5)
        odd = _product(c, (one - other).times(0.5), _root(c, scalar, turns, point)).turned_back()
        block.store(memory, point, even + odd)
        block.store(memory, middle - point, (even - odd).conjugate())


def _paired(block: Block, memory: Value, turns: Value, middle: Value) -> None:
    """The counterpart of `_told_apart`: the spectrum of pairs, from that of reals up to its `middle`."""
    c, scalar = block.c, block.scalar
    first, last = block.load(memory, c.integer(0)).real, block.load(memory, middle).real
    block.store(memory, c.integer(0), Complex(first + last, first - last))
    with c.loop(1, middle // 2 + 1) as point:
        one, other = block.load(memory, point), block.load(memory, middle - point).conjugate()
        even = one + other
        odd = _product(c, one - other, _root(c, scalar, turns, point).conjugate()).turned_back()
        block.store(memory, point, even - odd)
        block.store(memory, middle - point, (even + odd).conjugate())


def _root(c: Builder, scalar: Scalar, turns: Value, number: Value) -> Complex:
    real, imag = (c.load(turns, scalar, number * 2 + part) for part in range(2))
    return Complex(real, imag)


def _write(
    c: Builder, scalar: Scalar, given: str, memory: Value, starts: list[Value], width: Value, scale: Value, left: Value
) -> None:
    """The counterpart of `_read` for the results, each times `scale`; only the first `left` rows exist."""
    lanes, step = len(starts), 2 if given == HALF else 1
    for column, wide in c.lanes(0, width, lanes):
        vectors = [c.load(memory, scalar, (column + number) * (step * lanes), lanes) * scale for number in range(wide)]
        rows = turned(c, vectors) if wide == lanes else [c.lane(vectors[0], row) for row in range(lanes)]
        for number, (start, row) in enumerate(zip(starts, rows, strict=True)):
            with c.when(left > number, likely=True):
                c.store(start, scalar, column, row)


@kernel
def fourier_rows(b: Builder, arguments: Arguments, dtype: str, given: str, in_pairs: bool, lanes: int) -> None:
    """(out, x, factors, turns, halves, rows, points, passes, read, written, backward, scale).

    `factors` are those of `points`, for `passes` passes; `turns` has, pass by pass, the roots of unity that the results
    of short transforms are multiplied by. Rows have `read` numbers in `x` and `written` ones in `out`, without gaps.
    With `in_pairs` a point is a pair of real numbers; `halves` are roots of unity for twice as many.
    """
    scalar = SCALARS[dtype]
    out, x, factors, turns, halves = (arguments.array(number).data for number in range(5))
    rows, points, passes, read, written, backward = (arguments.integer(number) for number in range(5, 11))
    scale = b.convert(arguments.float64(11), scalar.compute)
    blocks = (rows + (lanes - 1)) // lanes
    grain = steps_worth(b, points * lanes, ELEMENTS // 2)
    captured = (out, x, factors, turns, halves, rows, points, passes, read, written, backward, scale)
    numbers_are = COMPLEX if in_pairs else given
    with b.parallel(blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, factors, turns, halves, rows, points, passes, read, written, backward, scale = inside
        block = Block(c, scalar, lanes, backward)
        size = points * (2 * lanes)
        # What is told apart needs more room than the pairs did, wherever the last pass left them.
        room = size + c.larger(size, written * lanes) if in_pairs else size * 2
        with scratch(c, scalar, room) as memory, c.loop(begin, end) as number:
            first = number * lanes
            numbers = [c.smaller(first + each, rows - 1) for each in range(lanes)]
            _read(c, scalar, numbers_are, [c.at(x, scalar, each * read) for each in numbers], memory, read)
            plain = Block(c, scalar, lanes, c.integer(0))
            if given == HALF and in_pairs:
                _paired(plain, memory, halves, points)
            elif given == HALF:
                _mirror(block, memory, points)
            done = _all_passes(block, memory, size, factors, turns, points, passes)
            if given == REAL and in_pairs:
                _told_apart(plain, done, halves, points)
                with c.when(written > points * 2 + 2):
                    _mirror(plain, done, points * 2)
            starts = [c.at(out, scalar, each * written) for each in numbers]
            _write(c, scalar, numbers_are, done, starts, written, scale, rows - first)


@kernel
def fourier_columns(b: Builder, arguments: Arguments, dtype: str, lanes: int) -> None:
    """(out, x, factors, turns, outer, points, inner, passes, backward, scale): complex numbers along dimension 1 of 3.

    Neighbours are lanes as they stand; there are at least as many as lanes. Where the last ones fill no vector, some of
    those before are transformed once more.
    """
    scalar = SCALARS[dtype]
    out, x, factors, turns = (arguments.array(number).data for number in range(4))
    outer, points, inner, passes, backward = (arguments.integer(number) for number in range(4, 9))
    scale = b.convert(arguments.float64(9), scalar.compute)
    blocks = (inner + (lanes - 1)) // lanes
    grain = steps_worth(b, points * lanes, ELEMENTS // 2)
    captured = (out, x, factors, turns, points, inner, passes, backward, scale, blocks)
    with b.parallel(outer * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, factors, turns, points, inner, passes, backward, scale, blocks = inside
        block = Block(c, scalar, lanes, backward)
        size = points * (2 * lanes)
        with scratch(c, scalar, size * 2) as memory, c.loop(begin, end) as task:
            slab = task // blocks
            column = c.smaller((task - slab * blocks) * lanes, inner - lanes)
            start = (slab * points * inner + column) * 2
            source, target = (c.opaque(c.at(each, scalar, start)) for each in (x, out))
            with c.loop(0, points) as point:
                mixed = c.load(source, scalar, point * inner * 2, 2 * lanes)
                for part in range(2):
                    split = c.shuffle(mixed, None, range(part, 2 * lanes, 2))
                    c.store(memory, scalar, (point * 2 + part) * lanes, split)
            done = _all_passes(block, memory, size, factors, turns, points, passes)
            with c.loop(0, points) as point:
                real, imag = (c.load(done, scalar, (point * 2 + part) * lanes, lanes) * scale for part in range(2))
                order = [lane // 2 + lanes * (lane % 2) for lane in range(2 * lanes)]
                c.store(target, scalar, point * inner * 2, c.shuffle(real, imag, order))
