"""Products of a few rows with a large matrix, of floats or of packed integers, which is read once.

Such a product takes as long as reading the matrix, of which 8-bit and 4-bit integers have a quarter and an eighth of
the bytes of floats. Where columns lie one after another, a block of them runs past all rows before the next is read;
where rows do, some of them are multiplied and added to a result that stays in a cache. Either way a number that was
read, or made of bits, is multiplied several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder, Operand, Value
from ..kernel import kernel
from ..machine.engine import engine
from ..rows.shared import rows_per_share, steps
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import F32, SCALARS, Scalar

BLOCK = 32
"""So many 4-bit numbers stand in 16 bytes: the first half in the low bits, the second in the high bits."""

_FLOAT, _UINT8 = SCALARS["float32"], SCALARS["uint8"]
_ROWS = (4, 2, 1)
_DEPTH = 16
"""So many products are added up before they join a result."""
_STEP = 16
"""So many bytes of a column are loaded at a time, if not more: one register of any processor."""


@kernel
def product(b: Builder, arguments: Arguments, matrix: str) -> None:
    """(out, x, weight): out[m, n] = sum over k of x[m, k] * weight[n, k], in floats of one type.

    Weights of 8 bits have (scales) behind them: the sums of column n are multiplied by scales[n].
    """
    out, x, weight, *scales = (arguments.array(number) for number in range(4 if matrix == "int8" else 3))
    stored = SCALARS[matrix]
    scalar = stored if stored.is_float else _FLOAT
    columns, length = weight.size(0), weight.size(1)
    shares = b.parallel(
        columns, rows_per_share(b, length), out.data, x.data, weight.data, *(each.data for each in scales), x.size(0),
        columns, length, unlock=True,
    )  # fmt: skip
    with shares as (c, begin, end, (out_, x_, weight_, *scales_, rows_, columns_, length_)):
        for block in _blocks(c, rows_, begin, end):
            lines = [c.at(weight_, stored, column * length_) for column in block.columns]
            sums = _Sums(c, block, scalar)
            for position, lanes in c.lanes(0, length_, max(sums.width, _STEP)):
                weights = [c.convert(c.load(line, stored, position, lanes), scalar.compute) for line in lines]
                sums.add([c.load(x_, scalar, row * length_ + position, lanes) for row in block.rows], weights)
            factors = [c.load(each, scalar, column) for each in scales_ for column in block.columns]
            for row, totals in zip(block.rows, sums.totals(), strict=True):
                for number, (column, total) in enumerate(zip(block.columns, totals, strict=True)):
                    c.store(out_, scalar, row * columns_ + column, total * factors[number] if factors else total)


@kernel
def product_by_rows(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, x, weight): out[m, n] = sum over k of x[m, k] * weight[k, n], in floats of one type."""
    out, x, weight = (arguments.array(number) for number in range(3))
    scalar = SCALARS[dtype]
    length, columns = weight.size(0), weight.size(1)
    # Shares are whole vectors: a share of fewer columns would be added up number by number.
    width = engine().register_bytes // scalar.size
    shares = b.parallel(
        (columns + width - 1) // width, steps_worth(b, x.size(0) * length * width, MULTIPLICATIONS // 8), out.data,
        x.data, weight.data, x.size(0), columns, length, unlock=True,
    )  # fmt: skip
    with shares as (c, begin, end, (out_, x_, weight_, rows_, columns_, length_)):
        whole = length_ // _DEPTH * _DEPTH
        first_column, last_column = begin * width, c.smaller(end * width, columns_)
        for depth, first, last in ((_DEPTH, c.integer(0), whole), (1, whole, length_)):
            with c.loop(first, last, depth) as start:
                for column, lanes in steps(c, first_column, last_column, 2 * width, width):
                    for rows in _row_blocks(c, rows_):
                        sums = [c.splat(c.constant(scalar.compute, 0.0), lanes) for _ in rows]
                        for step in range(depth):
                            line = c.load(weight_, scalar, (start + step) * columns_ + column, lanes)
                            for number, row in enumerate(rows):
                                factor = c.splat(c.load(x_, scalar, row * length_ + start + step), lanes)
                                sums[number] = c.fma(line, factor, sums[number])
                        for row, total in zip(rows, sums, strict=True):
                            place = row * columns_ + column
                            before = c.load(out_, scalar, place, lanes)
                            c.store(out_, scalar, place, c.select(start > 0, before + total, total))


@kernel
def int4_product(b: Builder, arguments: Arguments) -> None:
    """(out, x, weight, scales): the product with 4-bit numbers in groups along k, each with a scale and a zero.

    weight is (n, k / 2), `BLOCK` by `BLOCK`; scales (groups, n, 2). A weight is (number - 8) * scale + zero.
    """
    out, x, weight, scales = (arguments.array(number) for number in range(4))
    columns, length = weight.size(0), x.size(1)
    shares = b.parallel(
        columns, rows_per_share(b, length), out.data, x.data, weight.data, scales.data, x.size(0), columns, length,
        scales.size(0), unlock=True,
    )  # fmt: skip
    with shares as (c, begin, end, (out_, x_, weight_, scales_, rows_, columns_, length_, groups)):
        half = BLOCK // 2
        size = length_ // groups
        for block in _blocks(c, rows_, begin, end):
            lines = [c.at(weight_, _UINT8, column * (length_ // 2)) for column in block.columns]
            sums = _Sums(c, block, _FLOAT, half)
            with c.loop(0, groups) as group:
                places = [(group * columns_ + column) * 2 for column in block.columns]
                scale = [c.load(scales_, _FLOAT, place) for place in places]
                zero = [
                    c.load(scales_, _FLOAT, place + 1) - each * 8.0 for place, each in zip(places, scale, strict=True)
                ]
                with c.loop(group * size, (group + 1) * size, BLOCK) as position:
                    codes = [c.load(line, _UINT8, position // 2, half) for line in lines]
                    for start, numbers in ((0, [each & 15 for each in codes]), (half, [each >> 4 for each in codes])):
                        weights = [
                            c.fma(c.convert(number, F32), c.splat(factor, half), c.splat(offset, half))
                            for number, factor, offset in zip(numbers, scale, zero, strict=True)
                        ]
                        values = [c.load(x_, _FLOAT, row * length_ + position + start, half) for row in block.rows]
                        sums.add(values, weights)
            for row, totals in zip(block.rows, sums.totals(), strict=True):
                for column, total in zip(block.columns, totals, strict=True):
                    c.store(out_, _FLOAT, row * columns_ + column, total)


class _Block(NamedTuple):
    """Some rows by some columns of a result."""

    rows: list[Value]
    columns: list[Value]


class _Sums:
    """A sum for each row and column of a block: a vector, and one number for what is left over at its end."""

    def __init__(self, c: Builder, block: _Block, scalar: Scalar, most: int = 64) -> None:
        self.width = min(_widest(block, scalar), most)
        self._c = c
        self._wide, self._single = (
            [[c.variable(scalar.compute, 0.0, lanes) for _ in block.columns] for _ in block.rows]
            for lanes in (self.width, 1)
        )

    def add(self, values: Sequence[Value], weights: Sequence[Value]) -> None:
        """The products of a value of each row and a weight of each column."""
        c, lanes = self._c, weights[0].lanes
        width = min(self.width, lanes)
        for start in range(0, lanes, width):
            part = range(start, start + width)
            parts = [each if width == lanes else c.shuffle(each, None, part) for each in weights]
            for value, sums in zip(values, self._single if lanes == 1 else self._wide, strict=True):
                left = value if width == lanes else c.shuffle(value, None, part)
                for weight, total in zip(parts, sums, strict=True):
                    total.value = c.fma(left, weight, total.value)

    def totals(self) -> Iterator[list[Value]]:
        for wide, single in zip(self._wide, self._single, strict=True):
            yield [self._c.total(many.value) + one.value for many, one in zip(wide, single, strict=True)]


def _blocks(c: Builder, rows: Value, begin: Value, end: Value) -> Iterator[_Block]:
    """Loops over the blocks of a result, columns outside. To be used in a `for` statement, as `Builder.lanes` is."""
    together = _columns_together()
    whole = begin + (end - begin) // together * together
    for columns, first, last in ((together, begin, whole), (1, whole, end)):
        with c.loop(first, last, columns) as column:
            for block in _row_blocks(c, rows):
                yield _Block(block, [column + number for number in range(columns)])


def _row_blocks(c: Builder, rows: Value) -> Iterator[list[Value]]:
    """Loops over some rows at a time."""
    row: Operand = 0
    for count in _ROWS:
        covered = rows // count * count
        with c.loop(row, covered, count) as first:
            yield [first + number for number in range(count)]
        row = covered


def _columns_together() -> int:
    """Sums of four rows by so many columns fill half of 32 registers, or of the 16 that older processors have."""
    return 4 if engine().has_32_registers else 2


def _widest(block: _Block, scalar: Scalar) -> int:
    """As many numbers at a time as keep the sums of a block in registers.

    It does not depend on the columns: which of them stand together depends on the threads, and sums must not.
    """
    return engine().register_bytes // scalar.size * (_ROWS[0] // len(block.rows))
