"""Products of small matrices that lie in the cache: the building block of attention."""

from __future__ import annotations

from dataclasses import dataclass

from ..build import Builder, Value
from ..machine.engine import engine
from ..types import I64, POINTER, VOID, Scalar


def _block() -> tuple[int, int]:
    """Rows and vectors of the block that is computed at a time: its sums fill half of the registers.

    Sums that wait for each other leave a processor idle: there are more of them than it computes at once.
    """
    return (8, 2) if engine().register_bytes == 64 else (4, 1)


def write_product(b: Builder, scalar: Scalar) -> str:
    """Write the function C (+)= A B into the module of `b`; its name.

    Its arguments: m, n, k; A with the distances of its rows and columns; B and C with the distance of their rows, whose
    elements are neighbours; and whether to add to C. Distances are counted in elements.
    """
    name = f"product_{scalar.name}"
    if name in b.module.globals:
        return name
    types = [I64, I64, I64, POINTER, I64, I64, POINTER, I64, POINTER, I64, I64]
    c = b.subroutine(name, VOID, types)
    m, n, k, left, row_step, column_step, right, right_step, result, result_step, add = c.arguments
    widest = 64 // scalar.size
    most, vectors = _block()
    offsets = [c.opaque(row_step * number) for number in range(most)]
    position = c.variable(I64, 0)
    for count, width in dict.fromkeys([(vectors, widest), (1, widest), (1, widest // 4), (1, 1)]):
        together = count * width
        whole = position.value + (n - position.value) // together * together
        with c.loop(position.value, whole, together) as column:
            sums = _Sums(c, scalar, k, count, width)
            at = c.variable(I64, 0)
            for rows in (most, 1):
                end = at.value + (m - at.value) // rows * rows
                with c.loop(at.value, end, rows) as row:
                    factors = c.at(left, scalar, row * row_step), column_step
                    lines = c.at(right, scalar, column), right_step
                    goal = c.at(result, scalar, row * result_step + column)
                    sums.write(offsets[:rows], factors, lines, goal, result_step, add)
                at.value = end
        position.value = whole
    c.give_back()
    return name


@dataclass
class _Sums:
    """Writes blocks of a result: some rows of so many vectors."""

    c: Builder
    scalar: Scalar
    k: Value
    vectors: int
    width: int

    def write(
        self,
        offsets: list[Value],
        factors: tuple[Value, Value],
        lines: tuple[Value, Value],
        result: Value,
        result_step: Value,
        add: Value,
    ) -> None:
        """Write one block, whose rows have these offsets in A.

        Every element is summed up in the order of `k`, however large the block is.
        """
        c, scalar, width = self.c, self.scalar, self.width
        left, column_step = factors
        right, right_step = lines
        columns = range(0, self.vectors * width, width)
        sums = [[c.variable(scalar.compute, 0.0, width) for _ in columns] for _ in offsets]
        factor, line = c.variable(POINTER, left), c.variable(POINTER, right)
        with c.loop(0, self.k):
            loaded = [c.load(line.value, scalar, column, width) for column in columns]
            for offset, totals in zip(offsets, sums, strict=True):
                spread = c.splat(c.load(factor.value, scalar, offset), width)
                for total, each in zip(totals, loaded, strict=True):
                    total.value = c.fma(spread, each, total.value)
            factor.value, line.value = c.at(factor.value, scalar, column_step), c.at(line.value, scalar, right_step)
        placed = [
            (total, result_step * number + column)
            for number, totals in enumerate(sums)
            for column, total in zip(columns, totals, strict=True)
        ]
        with c.when(add != 0):
            for total, place in placed:
                total.value = total.value + c.load(result, scalar, place, width)
        for total, place in placed:
            c.store(result, scalar, place, total.value)


class Product:
    """Calls of the function that `write_product` wrote."""

    def __init__(self, b: Builder, scalar: Scalar) -> None:
        self.name = write_product(b, scalar)

    def __call__(
        self,
        c: Builder,
        sizes: tuple[Value | int, Value | int, Value | int],
        left: tuple[Value, Value | int, Value | int],
        right: tuple[Value, Value | int],
        result: tuple[Value, Value | int],
        add: Value | int,
    ) -> None:
        """`result` (+)= `left` times `right`, of m x k and k x n elements; `sizes` are (m, n, k). 0: do not add."""
        arguments = [*sizes, *left, *right, *result, add]
        c.call(self.name, VOID, [each if isinstance(each, Value) else c.integer(each) for each in arguments])
