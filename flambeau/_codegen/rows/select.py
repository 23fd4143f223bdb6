"""The element of a given rank of each line of a matrix, or the most frequent one, and where it is: without sorting."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value, Variable
from ..ir import ir
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import F32, I32, I64, SCALARS, Scalar

FEW = 32
"""Up to this length of lines, the elements before each one are counted."""
_BINS = 256


def _bits_of_key(scalar: Scalar) -> int:
    if scalar.is_float:
        return 32 if scalar.compute == F32 else 64
    return 8 * scalar.size


def _key(c: Builder, value: Value, scalar: Scalar) -> Value:
    """An unsigned integer that rises as the value does: both zeros have the same one, and every NaN the largest."""
    bits = _bits_of_key(scalar)
    type_ = ir.IntType(bits)
    if scalar.is_float:
        raw = c.bits(value + 0.0, type_)  # -0.0 + 0.0 is 0.0
        key = raw ^ ((raw >> (bits - 1)) | -(1 << bits - 1))
        key = c.select(value != value, c.constant(key.type, -1), key)
    else:
        key = value ^ -(1 << bits - 1) if scalar.is_signed else value
    return Value(c, key.ir, False)


def _missing(c: Builder, place: Value, scalar: Scalar, length: Value) -> Value:
    """How many NaN there are in a line."""
    total = c.variable(I64, 0)
    for position, lanes in c.lanes(0, length, 16):
        value = c.load(place, scalar, position, lanes)
        count = c.convert(value != value, I32)
        total.add(c.convert(c.total(count) if lanes > 1 else count, I64))
    return total.value


def _rank(c: Builder, kind: str, scalar: Scalar, place: Value, length: Value, rank: Value) -> Value:
    if kind == "given":
        return rank
    if not scalar.is_float:
        return (length - 1) // 2
    missing = _missing(c, place, scalar, length)
    if kind == "median":
        return c.select(missing > 0, length - missing, (length - 1) // 2)
    return c.larger(length - missing - 1, 0) // 2


@kernel
def select_lines(b: Builder, arguments: Arguments, kind: str, dtype: str) -> None:
    """(values, positions, x, lines, length, rank): equal elements count in their order, NaN as the largest.

    The rank is the `given` one, or that of the lower `median`, which is NaN if one is there, or of the `nanmedian`.
    """
    scalar = SCALARS[dtype]
    values, positions, x = (arguments.array(number).data for number in range(3))
    lines, length, rank = (arguments.integer(number) for number in range(3, 6))
    grain = steps_worth(b, length, ELEMENTS // 2)
    with b.parallel(lines, grain, values, positions, x, length, rank, unlock=True) as (c, begin, end, inside):
        values_, positions_, x_, length_, rank_ = inside
        counts = c.stack(I32, _BINS, 64)
        with c.loop(begin, end) as line:
            place = c.at(x_, scalar, line * length_)
            wanted = c.variable(I64, _rank(c, kind, scalar, place, length_, rank_))
            found = c.variable(I64, 0)
            with c.either(length_ <= FEW) as (few, many):
                with few:
                    _by_counting(c, scalar, place, length_, wanted.value, found)
                with many:
                    _by_digits(c, scalar, place, length_, wanted, found, counts)
            c.store_raw(found.value, c.offset(positions_, line, I64))
            chosen = c.load_raw(c.at(place, scalar, found.value), scalar.memory, scalar.size)
            c.store_raw(chosen, c.at(values_, scalar, line), None, scalar.size)


def _by_counting(c: Builder, scalar: Scalar, place: Value, length: Value, wanted: Value, found: Variable) -> None:
    with c.loop(0, length) as candidate:
        own = _key(c, c.load(place, scalar, candidate), scalar)
        before = c.variable(I64, 0)
        with c.loop(0, length) as other:
            key = _key(c, c.load(place, scalar, other), scalar)
            before.add(c.convert((key < own) | ((key == own) & (other < candidate)), I64))
        found.value = c.select(before.value == wanted, candidate, found.value)


def _by_digits(
    c: Builder, scalar: Scalar, place: Value, length: Value, wanted: Variable, found: Variable, counts: Value
) -> None:
    """One digit of the key after the other, the highest first: how many elements have which, and which is the one."""
    bits = _bits_of_key(scalar)
    type_ = ir.IntType(bits)
    prefix = c.variable(type_, 0, signed=False)
    for shift in range(bits - 8, -1, -8):
        with c.loop(0, _BINS, 16) as bin_:
            c.store_raw(c.constant(ir.VectorType(I32, 16), 0), c.offset(counts, bin_, I32), None, 4)
        start = prefix.value
        with c.loop(0, length) as position:
            key = _key(c, c.load(place, scalar, position), scalar)
            if shift == bits - 8:
                _count(c, counts, key >> shift)
            else:
                with c.when((key ^ start) >> (shift + 8) == 0):
                    _count(c, counts, (key >> shift) & (_BINS - 1))
        digit = c.variable(I64, 0)
        with c.repeat_while() as go_on_if:
            count = c.convert(c.load_raw(c.offset(counts, digit.value, I32), I32), I64)
            go_on_if(wanted.value >= count)
            wanted.add(-count)
            digit.add(1)
        chosen = c.convert(digit.value, type_, False) if bits < 64 else Value(c, digit.value.ir, False)
        prefix.value = start | (chosen << shift)
    goal = prefix.value
    with c.repeat_while() as go_on_if:
        here = c.convert(_key(c, c.load(place, scalar, found.value), scalar) == goal, I64)
        go_on_if((wanted.value > 0) | (here == 0))
        wanted.add(-here)
        found.add(1)


def _count(c: Builder, counts: Value, digit: Value) -> None:
    place = c.offset(counts, c.convert(digit, I64) if digit.element != I64 else digit, I32)
    c.store_raw(c.load_raw(place, I32) + 1, place)


@kernel
def leading_rows(b: Builder, arguments: Arguments, largest: bool, nan_leads: bool, dtype: str) -> None:
    """(values, positions, x, rows, length, count): the first `count` of each row in order, of equal ones the first.

    NaN comes first or last. Each element that belongs to the first so far is put in its place among them: a quick way
    for few.
    """
    b.want_all_passes()
    scalar, index = SCALARS[dtype], SCALARS["int64"]
    captured = [arguments.array(number).data for number in range(3)]
    rows, length, count = (arguments.integer(number) for number in range(3, 6))
    grain = steps_worth(b, length, ELEMENTS // 2)
    with b.parallel(rows, grain, *captured, length, count, unlock=True) as (c, begin, end, inside):
        values, positions, x, length_, count_ = inside

        def element(line: Value, place: Value) -> Value:
            value = c.load(line, scalar, place)
            value.signed = scalar.is_signed
            return value

        def precedes(one: Value, other: Value) -> Value:
            before = one > other if largest else one < other
            if scalar.is_float:
                first, second = (one, other) if nan_leads else (other, one)
                before = before | ((first != first) & (second == second))
            return before

        with c.loop(begin, end) as row:
            source = c.at(x, scalar, row * length_)
            target, places = c.at(values, scalar, row * count_), c.at(positions, index, row * count_)
            filled = c.variable(I64, 0)
            with c.loop(0, length_) as number:
                value = element(source, number)
                enters = c.variable(I64, 1)
                with c.when(filled.value == count_):
                    enters.value = c.convert(precedes(value, element(target, count_ - 1)), I64, False)
                with c.when(enters.value != 0):
                    place = c.variable(I64, c.smaller(filled.value, count_ - 1))
                    with c.repeat_while() as go_on_if:
                        go_on_if(place.value > 0)
                        before = place.value - 1
                        go_on_if(precedes(value, element(target, before)))
                        c.store(target, scalar, place.value, element(target, before))
                        c.store(places, index, place.value, c.load(places, index, before))
                        place.value = before
                    c.store(target, scalar, place.value, value)
                    c.store(places, index, place.value, number)
                    filled.value = c.smaller(filled.value + 1, count_)


@kernel
def most_frequent(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(values, positions, x, rows, length): of equally frequent ones the smallest, at its last place.

    Each element is compared with all: a quick way for short rows. NaN equals nothing.
    """
    scalar, index = SCALARS[dtype], SCALARS["int64"]
    captured = [arguments.array(number).data for number in range(3)]
    rows, length = arguments.integer(3), arguments.integer(4)
    grain = steps_worth(b, length * length, ELEMENTS // 2)
    with b.parallel(rows, grain, *captured, length, unlock=True) as (c, begin, end, inside):
        values, positions, x, length_ = inside
        with c.loop(begin, end) as row:
            line = c.at(x, scalar, row * length_)
            most, place = c.variable(I64, -1), c.variable(I64, 0)
            with c.loop(0, length_) as candidate:
                value, best = c.load(line, scalar, candidate), c.load(line, scalar, place.value)
                value.signed = best.signed = scalar.is_signed
                wide, single = c.variable(I32, 0, 16), c.variable(I32, 0)
                for position, lanes in c.lanes(0, length_, 16):
                    equal = c.load(line, scalar, position, lanes) == value
                    (wide if lanes > 1 else single).add(c.convert(equal, I32))
                count = c.convert(c.total(wide.value) + single.value, I64)
                better = (count > most.value) | ((count == most.value) & (value <= best))
                most.value = c.select(better, count, most.value)
                place.value = c.select(better, candidate, place.value)
            c.store(positions, index, row, place.value)
            chosen = c.load_raw(c.at(line, scalar, place.value), scalar.memory, scalar.size)
            c.store_raw(chosen, c.at(values, scalar, row), None, scalar.size)
