"""What kernels that go along rows share: widths, sums without loss of precision, folds, rows as lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..build import Builder, Operand, Value
from ..ir import ir
from ..shares import ELEMENTS, steps_worth
from ..types import F64, I32, I64, POINTER, SCALARS, VOID, Scalar, float32, float64

BLOCK = 1024
"""So many neighbours are added in their own precision; such sums then in double precision."""
LINES = 128
"""So many elements below each other are added in their own precision, each column in its own lane."""
_CACHE_LINE = 64
"""Bytes, at which vectors are to begin: one in two lines is read and written twice."""

Terms = Callable[[Value, int], Sequence[Value]]


def width_of(scalar: Scalar, registers: int = 4) -> int:
    """How many elements fill so many registers of 128 bits."""
    return registers * (2 if scalar.compute == F64 else 4)


def wide_of(scalar: Scalar) -> Scalar:
    """The type in which sums are kept: float32, or float64 for float64."""
    return float64 if scalar.compute == F64 else float32


def rows_per_share(b: Builder, length: Value) -> Value:
    """How many rows of `length` elements one thread should have at least."""
    return steps_worth(b, length, ELEMENTS // 4)


def steps(c: Builder, begin: Operand, end: Operand, *widths: int) -> Iterator[tuple[Value, int]]:
    """Like `c.lanes`, with vectors of several widths, the widest first, before single elements."""
    begin, end = c.integer(begin), c.integer(end)
    for width in (*widths, 1):
        whole = end if width == 1 else begin + (end - begin) // width * width
        with c.loop(begin, whole, width) as position:
            yield position, width
        begin = whole


def totals(
    c: Builder, begin: Operand, end: Operand, width: int, scalar: Scalar, count: int, terms: Terms
) -> list[Value]:
    """`count` sums over a range, in float64, of what `terms(position, lanes)` gives.

    Each lane adds up its own elements, those of an incomplete vector at the end, too: zeros behind the last element
    change nothing.
    """
    begin, end = c.integer(begin), c.integer(end)
    results = [c.variable(F64, 0.0) for _ in range(count)]
    rooms = [c.stack(scalar.compute, width, _CACHE_LINE) for _ in range(count)]
    with c.loop(begin, end, BLOCK) as start:
        stop = c.smaller(start + BLOCK, end)
        wide = [c.variable(scalar.compute, 0.0, width) for _ in range(count)]
        whole = start + (stop - start) // width * width
        with c.loop(start, whole, width) as position:
            for total, term in zip(wide, terms(position, width), strict=True):
                total.add(term)
        kind = SCALARS["float64" if scalar.compute == F64 else "float32"]
        with c.when(whole < stop):
            for room, vector in zip(rooms, wide, strict=True):
                c.store(room, kind, 0, vector.value)
            with c.loop(whole, stop) as position:
                for room, term in zip(rooms, terms(position, 1), strict=True):
                    c.store(room, kind, position - whole, c.load(room, kind, position - whole) + term)
            for room, vector in zip(rooms, wide, strict=True):
                vector.value = c.load(room, kind, 0, width)
        for result, vector in zip(results, wide, strict=True):
            result.add(c.convert(c.total(vector.value), F64))
    return [result.value for result in results]


def column_total(c: Builder, pointer: Value, scalar: Scalar, step: Value, count: Value, lanes: int) -> Value:
    """The sum, in float64, of `count` elements, or vectors of them, each `step` elements below the one before."""
    result = c.variable(F64, 0.0, lanes)
    with c.loop(0, count, LINES) as start:
        partial = c.variable(scalar.compute, 0.0, lanes)
        with c.loop(start, c.smaller(start + LINES, count)) as line:
            partial.add(c.load(pointer, scalar, line * step, lanes))
        result.add(c.convert(partial.value, F64))
    return result.value


def highest(
    c: Builder, begin: Operand, end: Operand, width: int, scalar: Scalar, value: Callable[[Value, int], Value]
) -> Value:
    """The largest of the values over a range; NaN if there is one, and -inf if there is none at all."""
    wide = c.variable(scalar.compute, float("-inf"), width)
    single = c.variable(scalar.compute, float("-inf"))
    for position, lanes in c.lanes(begin, end, width):
        best = wide if lanes == width else single
        best.value = c.maximum(best.value, value(position, lanes))
    return c.maximum(c.largest(wide.value), single.value)


def rounded(c: Builder, value: Value, scalar: Scalar) -> Value:
    """A value as it comes back from memory of another type."""
    return value if scalar.compute == scalar.memory else c.unpacked(c.packed(value, scalar), scalar)


@contextmanager
def scratch(c: Builder, scalar: Scalar, count: Operand) -> Iterator[Value]:
    """Memory for `count` elements during the body, from the beginning of a cache line on."""
    memory = c.call("malloc", POINTER, [c.integer(count) * scalar.size + (_CACHE_LINE - 1)])
    address = Value(c, c.ir.ptrtoint(memory.ir, I64))
    yield memory + (-address & (_CACHE_LINE - 1))
    c.call("free", VOID, [memory])


def load_lanes(c: Builder, pointer: Value, scalar: Scalar, index: Value, lanes: int, step: Value) -> Value:
    """`lanes` elements of an array, each `step` elements after the one before."""
    if lanes == 1:
        return c.load(pointer, scalar, index)
    vector = ir.Constant(ir.VectorType(scalar.memory, lanes), ir.Undefined)
    for lane in range(lanes):
        place = c.at(pointer, scalar, index + step * lane)
        vector = c.ir.insert_element(vector, c.load_raw(place, scalar.memory, scalar.size).ir, ir.Constant(I32, lane))
    return c.unpacked(Value(c, vector, scalar.is_signed), scalar)


def store_lanes(c: Builder, pointer: Value, scalar: Scalar, index: Value, value: Value, step: Value) -> None:
    """The counterpart of `load_lanes`."""
    if value.lanes == 1:
        c.store(pointer, scalar, index, value)
        return
    packed = c.packed(value, scalar)
    for lane in range(value.lanes):
        place = c.at(pointer, scalar, index + step * lane)
        c.store_raw(c.lane(packed, lane), place, None, scalar.size)
