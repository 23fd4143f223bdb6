"""Products of matrices by a function with the interface of CBLAS, in parts that the threads of the pool share.

A library's own threads would take the processors from those of the pool: they go on asking for work, for tens of
milliseconds, after each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..machine.prepared_call import called
from ..types import F32, F64, I32, I64, POINTER, VOID

_BY_ROWS = 101
"""CBLAS' word for matrices that lie row by row."""


class Entry(IntEnum):
    """What stands where in the table that a call is given: 64-bit integers, distances in bytes."""

    MULTIPLY = 0
    GET_THREADS = 1
    SET_THREADS = 2
    LEFT_TURNS = 3
    RIGHT_TURNS = 4
    LEFT_STEP = 5
    """In elements, as the steps of the others: from one row to the next, or one column if the matrix lies by these."""
    RIGHT_STEP = 6
    OUT_STEP = 7
    ROWS = 8
    COLUMNS = 9
    LENGTH = 10
    ROWS_EACH = 11
    """The rows of a part of the result; of those of the last one there may be fewer."""
    COLUMNS_EACH = 12
    PARTS = 13
    """How many parts the result is divided into: by rows, or by columns."""
    PRODUCTS = 14
    """How many products there are in all."""
    INNER = 15
    """How many of them have the same place in the outer one of two dimensions of the batch."""
    LEFT_OUTER = 16
    LEFT_INNER = 17
    LEFT_PART = 18
    RIGHT_OUTER = 19
    RIGHT_INNER = 20
    RIGHT_PART = 21
    OUT_OUTER = 22
    OUT_INNER = 23
    OUT_PART = 24
    GRAIN = 25
    """How many parts, of one or several products, a thread should have at least."""
    ERROR = 26
    """The exception to raise where a function returns other than 0."""


@kernel
def shared_products(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, left, right, table): the products of a batch, of which each may be in several parts."""
    _share(b, arguments, dtype, False)


@kernel
def shared_sums(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, left, right, table): likewise, but the inner products of each outer place of a batch are added up."""
    _share(b, arguments, dtype, True)


def _share(b: Builder, arguments: Arguments, dtype: str, sums: bool) -> None:
    out, left, right, table = (arguments.array(number).data for number in range(4))
    get_threads, set_threads = (_entry(b, table, each) for each in (Entry.GET_THREADS, Entry.SET_THREADS))
    before = called(b, get_threads, I32, [])
    called(b, set_threads, VOID, [b.constant(I32, 1)])
    products = _entry(b, table, Entry.PRODUCTS)
    if sums:
        inner = _entry(b, table, Entry.INNER)
        products = (products + inner - 1) // inner
    count = products * _entry(b, table, Entry.PARTS)
    with (
        b.parallel(count, _entry(b, table, Entry.GRAIN), out, left, right, table, unlock=True) as (
            c,
            begin,
            end,
            arrays,
        ),
        c.loop(begin, end) as number,
    ):
        (_add_up_part if sums else _multiply_part)(c, dtype, number, arrays)
    called(b, set_threads, VOID, [before])


@kernel
def shared_sgemm(b: Builder, arguments: Arguments, adds: bool) -> None:
    """(out, left, right, table): likewise of float32, by a function with the interface of BLAS.

    Factors that turn have letters, and each thread is told to call it alone: the library's threads are those of OpenMP.
    `adds`: the products are added to what stands in `out`.
    """
    out, left, right, table = (arguments.array(number).data for number in range(4))
    get_threads, set_threads = (_entry(b, table, each) for each in (Entry.GET_THREADS, Entry.SET_THREADS))
    before, failed = called(b, get_threads, I32, []), b.stack(I64, 1)
    b.store_raw(b.constant(I64, 0), failed)
    count = _entry(b, table, Entry.PRODUCTS) * _entry(b, table, Entry.PARTS)
    with (
        b.parallel(count, _entry(b, table, Entry.GRAIN), out, left, right, table, failed, unlock=True) as (
            c,
            begin,
            end,
            (*arrays, status),
        ),
        c.loop(begin, end) as number,
    ):
        entry, part_of_out, one, other, rows, columns = _part(c, number, arrays)
        called(c, entry[Entry.SET_THREADS], VOID, [c.constant(I32, 1)])
        turns = [c.convert(entry[each], I32) for each in (Entry.LEFT_TURNS, Entry.RIGHT_TURNS)]
        kept = c.constant(F32, 1.0 if adds else 0.0)
        given = [
            *turns, rows, columns, entry[Entry.LENGTH], c.constant(F32, 1.0), one, entry[Entry.LEFT_STEP], other,
            entry[Entry.RIGHT_STEP], kept, part_of_out, entry[Entry.OUT_STEP],
        ]  # fmt: skip
        returned = called(c, entry[Entry.MULTIPLY], I32, given)
        with c.when(returned != 0, likely=False):
            c.store_raw(c.convert(returned, I64), status)
    called(b, set_threads, VOID, [before])
    with b.when(b.load_raw(failed, I64) != 0, likely=False):
        error = _entry(b, table, Entry.ERROR)
        b.call("PyErr_SetNone", VOID, [Value(b, b.ir.inttoptr(error.ir, POINTER))])
        b.give_back(b.constant(POINTER, 0))


def _entry(b: Builder, table: Value, position: int) -> Value:
    return b.load_raw(b.offset(table, position, I64), I64)


def _part(
    b: Builder, number: Value, arrays: Sequence[Value]
) -> tuple[dict[Entry, Value], Value, Value, Value, Value, Value]:
    """The table's entries, where a part's result and both factors begin, and how many rows and columns it has."""
    *matrices, table = arrays
    entry = {each: _entry(b, table, each) for each in Entry}
    product, part = number // entry[Entry.PARTS], number % entry[Entry.PARTS]
    outer, inner = product // entry[Entry.INNER], product % entry[Entry.INNER]
    out, left, right = (
        b.offset(matrix, outer * entry[first] + inner * entry[second] + part * entry[third])
        for matrix, first, second, third in zip(
            matrices,
            (Entry.OUT_OUTER, Entry.LEFT_OUTER, Entry.RIGHT_OUTER),
            (Entry.OUT_INNER, Entry.LEFT_INNER, Entry.RIGHT_INNER),
            (Entry.OUT_PART, Entry.LEFT_PART, Entry.RIGHT_PART),
            strict=True,
        )
    )
    rows, columns = (
        b.smaller(entry[each], entry[total] - b.select(entry[each] < entry[total], part * entry[each], 0))
        for each, total in ((Entry.ROWS_EACH, Entry.ROWS), (Entry.COLUMNS_EACH, Entry.COLUMNS))
    )
    return entry, out, left, right, rows, columns


def _multiply_part(b: Builder, dtype: str, number: Value, arrays: Sequence[Value]) -> None:
    one, nothing = _factors(b, dtype)
    _multiply(b, _part(b, number, arrays), one, nothing)


def _add_up_part(b: Builder, dtype: str, number: Value, arrays: Sequence[Value]) -> None:
    one, nothing = _factors(b, dtype)
    table = arrays[-1]
    inner, parts = _entry(b, table, Entry.INNER), _entry(b, table, Entry.PARTS)
    first = number // parts * inner
    _multiply(b, _part(b, first * parts + number % parts, arrays), one, nothing)
    with b.loop(first + 1, b.smaller(first + inner, _entry(b, table, Entry.PRODUCTS))) as each:
        _multiply(b, _part(b, each * parts + number % parts, arrays), one, one)


def _multiply(
    b: Builder, part: tuple[dict[Entry, Value], Value, Value, Value, Value, Value], one: Value, kept: Value
) -> None:
    """Write a part of a product to its place, plus what stands there as often as `kept` says."""
    entry, out, left, right, rows, columns = part
    turns = [b.convert(entry[each], I32) for each in (Entry.LEFT_TURNS, Entry.RIGHT_TURNS)]
    given = [
        b.constant(I32, _BY_ROWS), *turns, rows, columns, entry[Entry.LENGTH], one, left, entry[Entry.LEFT_STEP], right,
        entry[Entry.RIGHT_STEP], kept, out, entry[Entry.OUT_STEP],
    ]  # fmt: skip
    called(b, entry[Entry.MULTIPLY], VOID, given)


def _factors(b: Builder, dtype: str) -> tuple[Value, Value]:
    """1 and 0: what a product is multiplied by, and what was there before; complex ones are passed by address."""
    type_ = F32 if dtype in ("float32", "complex64") else F64
    one, nothing = b.constant(type_, 1.0), b.constant(type_, 0.0)
    if not dtype.startswith("complex"):
        return one, nothing
    places = [b.stack(type_, 2) for _ in range(2)]
    for place, value in zip(places, (one, nothing), strict=True):
        b.store_raw(value, place)
        b.store_raw(nothing, b.offset(place, 1, type_))
    return places[0], places[1]
