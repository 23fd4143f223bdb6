"""Kernels over lists of tensors: all elements of all tensors are the steps of one parallel loop.

A kernel first writes down where the tensors are, while it holds Python's lock. The table has a row for each position of
the lists: where its elements begin and end in the sequence of all elements, and the address of each tensor. Shares of
the loop are ranges of that sequence, so that many small and few large tensors are divided alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arrays import Arguments, ArrayArgument
from ..build import Builder, Value
from ..expr import Program
from ..kernel import kernel
from ..lower import run_program
from ..shares import ELEMENTS, steps_worth
from ..types import BOOL, F64, I32, I64, POINTER, SCALARS, VOID, Scalar

_BLOCK = 16384
"""Sums are made of so many elements at a time, and these added up in their order, however many threads there are."""

_ALIGNED, _WRITEABLE, _IN_ORDER = 0x100, 0x400, 0x3
"""NumPy's flags: where its type wants to be; may be changed; in C order, in Fortran's order."""

_START, _END, _FIRST = 0, 1, 2
"""The columns of the table: where a row's elements begin and end, then the addresses."""


class _Table:
    """The rows of the lists, as seen from one function."""

    def __init__(self, b: Builder, place: Value, columns: int) -> None:
        self.b = b
        self.place = place
        self.columns = columns

    def _cell(self, row: Value, column: int) -> Value:
        return self.b.offset(self.place, row * self.columns + column, I64)

    def number(self, row: Value, column: int) -> Value:
        return self.b.load_raw(self._cell(row, column), I64)

    def address(self, row: Value, tensor: int) -> Value:
        return self.b.load_raw(self._cell(row, _FIRST + tensor), POINTER)

    def put(self, row: Value, column: int, value: Value) -> None:
        self.b.store_raw(value, self._cell(row, column))


def _elements(b: Builder, args: Arguments, position: Value) -> Value:
    """How many elements an array has."""
    array = args.array(position)
    count = b.variable(I64, 1)
    with b.loop(0, array.ndim) as dimension:
        count.value = count.value * array.size(dimension)
    return count.value


def _same_order(b: Builder, leader: ArrayArgument, others: list[ArrayArgument], size: int) -> Value:
    """Whether arrays of one shape have their elements in the same order, without gaps, as in channels_last."""
    same = b.variable(BOOL, True)
    with b.loop(0, leader.ndim) as dimension, b.when(leader.size(dimension) != 1):
        stride = leader.stride(dimension)
        for other in others:
            same.value = same.value & (other.stride(dimension) == stride)
        inner = b.variable(I64, size)  # what a step along this dimension has to pass over
        with b.loop(0, leader.ndim) as each:
            own = leader.stride(each)
            is_inside = (own < stride) | ((own == stride) & (each < dimension))
            with b.when(is_inside & (leader.size(each) != 1)):
                inner.value = inner.value * leader.size(each)
        same.value = same.value & (inner.value == stride)
    return same.value


@contextmanager
def _unlocked_if(b: Builder, condition: Value) -> Iterator[None]:
    """Let other Python threads run during the body if it is long."""
    state = b.variable(POINTER, 0)
    with b.when(condition):
        state.value = b.call("PyEval_SaveThread", POINTER, [])
    yield
    with b.when(condition):
        b.call("PyEval_RestoreThread", VOID, [state.value])


def _leave(b: Builder, result: Value) -> None:
    b.call("Py_IncRef", VOID, [result])
    b.give_back(result)


@kernel
def update_list(
    b: Builder, args: Arguments, dtype: str, tensors: int, numbers: int, program: Program, changed: tuple[int, ...]
) -> None:
    """Run a program on every element of lists of arrays, and store its results in those that it changes.

    Arguments: what to return if it was done, what if it was not; the numbers; then the arrays, list after list. It does
    nothing if the arrays of a row have no common shape and order, or one to be changed may not be.
    """
    scalar = SCALARS[dtype]
    done, refused = args.object(0), args.object(1)
    first = 2 + numbers
    values = [b.convert(args.float64(2 + number), scalar.compute) for number in range(numbers)]
    rows = (args.count - first) // tensors
    columns = _FIRST + tensors
    place = b.call("malloc", POINTER, [rows * (columns * 8)])
    table = _Table(b, place, columns)
    with b.when(place == b.constant(POINTER, 0), likely=False):
        _leave(b, refused)
    total = b.variable(I64, 0)
    fits = b.variable(BOOL, True)
    with b.loop(0, rows) as row:
        leader = args.array(row + first)
        flags = b.variable(I32, _IN_ORDER)
        for tensor in range(tensors):
            array = args.array(row + rows * tensor + first)
            own = array.flags
            flags.value = flags.value & own
            needed = _ALIGNED | (_WRITEABLE if tensor in changed else 0)
            fits.value = fits.value & ((own & needed) == needed)
            if tensor:
                fits.value = fits.value & (array.ndim == leader.ndim)
                with b.when(fits.value), b.loop(0, leader.ndim) as dimension:
                    fits.value = fits.value & (array.size(dimension) == leader.size(dimension))
            table.put(row, _FIRST + tensor, array.data)
        with b.when(fits.value & (flags.value == 0)):
            others = [args.array(row + rows * tensor + first) for tensor in range(1, tensors)]
            fits.value = _same_order(b, leader, others, scalar.size)
        table.put(row, _START, total.value)
        total.add(_elements(b, args, row + first))
        table.put(row, _END, total.value)
    with b.when(~fits.value, likely=False):
        b.call("free", VOID, [place])
        _leave(b, refused)
    with (
        _unlocked_if(b, total.value >= 2 * ELEMENTS),
        b.parallel(total.value, ELEMENTS, place, rows, *values) as (c, begin, end, (inner_place, inner_rows, *inputs)),
    ):
        _update_range(c, _Table(c, inner_place, columns), inner_rows, begin, end, scalar, inputs, program, changed)
    b.call("free", VOID, [place])
    _leave(b, done)
    b.ir.position_at_end(b.ir.append_basic_block("never"))  # what every kernel ends with is written there


def _update_range(
    c: Builder,
    table: _Table,
    rows: Value,
    begin: Value,
    end: Value,
    scalar: Scalar,
    numbers: list[Value],
    program: Program,
    changed: tuple[int, ...],
) -> None:
    """Update the elements from `begin` to `end` of the sequence of all elements."""
    tensors = table.columns - _FIRST
    width = 64 // max(scalar.size, 4)
    with c.loop(0, rows) as row:
        start = table.number(row, _START)
        low = c.larger(begin, start) - start
        high = c.smaller(end, table.number(row, _END)) - start
        with c.when(low < high):
            addresses = [table.address(row, tensor) for tensor in range(tensors)]
            for index, lanes in c.lanes(low, high, width):
                elements = [c.load(address, scalar, index, lanes) for address in addresses]
                results = run_program(c, program, [*elements, *numbers], lanes)
                for tensor, result in zip(changed, results, strict=True):
                    c.store(addresses[tensor], scalar, index, result)


@kernel
def square_sums(b: Builder, args: Arguments, dtype: str) -> None:
    """Sums of squares of arrays in C or Fortran's order: the first argument, of type float64, gets one for each."""
    scalar = SCALARS[dtype]
    rows = args.count - 1
    columns = _FIRST + 2  # blocks are counted from _START to _END; an address; a number of elements
    place = b.call("malloc", POINTER, [rows * (columns * 8)])
    with b.when(place == b.constant(POINTER, 0), likely=False):
        b.give_back(b.call("PyErr_NoMemory", POINTER, []))
    table = _Table(b, place, columns)
    blocks, total = b.variable(I64, 0), b.variable(I64, 0)
    with b.loop(0, rows) as row:
        count = _elements(b, args, row + 1)
        table.put(row, _START, blocks.value)
        blocks.add((count + (_BLOCK - 1)) // _BLOCK)
        total.add(count)
        table.put(row, _END, blocks.value)
        table.put(row, _FIRST, args.array(row + 1).data)
        table.put(row, _FIRST + 1, count)
    partial = b.call("malloc", POINTER, [blocks.value * 8 + 8])
    with b.when(partial == b.constant(POINTER, 0), likely=False):
        b.call("free", VOID, [place])
        b.give_back(b.call("PyErr_NoMemory", POINTER, []))
    grain = steps_worth(b, total.value // b.larger(blocks.value, 1))
    with (
        _unlocked_if(b, total.value >= 2 * ELEMENTS),
        b.parallel(blocks.value, grain, place, partial, rows) as (
            c,
            begin,
            end,
            (inner_place, inner_partial, inner_rows),
        ),
    ):
        inner = _Table(c, inner_place, columns)
        with c.loop(0, inner_rows) as row:
            start = inner.number(row, _START)
            low, high = c.larger(begin, start), c.smaller(end, inner.number(row, _END))
            with c.loop(low, high) as block:
                first = (block - start) * _BLOCK
                last = c.smaller(first + _BLOCK, inner.number(row, _FIRST + 1))
                squares = _sum_of_squares(c, inner.address(row, 0), scalar, first, last)
                c.store_raw(squares, c.offset(inner_partial, block, F64))
    sums = args.array(0).data
    with b.loop(0, rows) as row:
        of_row = b.variable(F64, 0.0)
        with b.loop(table.number(row, _START), table.number(row, _END)) as block:
            of_row.add(b.load_raw(b.offset(partial, block, F64), F64))
        b.store_raw(of_row.value, b.offset(sums, row, F64))
    b.call("free", VOID, [partial])
    b.call("free", VOID, [place])


def _sum_of_squares(c: Builder, address: Value, scalar: Scalar, first: Value, last: Value) -> Value:
    """The sum of the squares of a block, in the type that is computed with, in as many parts as a vector has lanes."""
    width = 64 // max(scalar.size, 4)
    sums = {lanes: c.variable(scalar.compute, 0.0, lanes) for lanes in (width, 1)}
    for index, lanes in c.lanes(first, last, width):
        x = c.load(address, scalar, index, lanes)
        sums[lanes].add(x * x)
    wide = c.convert(sums[width].value, F64)
    return c.total(wide) + c.convert(sums[1].value, F64)
