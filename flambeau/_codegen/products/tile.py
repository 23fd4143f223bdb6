"""Products of small matrices that lie in the cache: the building block of attention."""

from __future__ import annotations

import llvmlite.ir as ir

from ..build import Builder, Value
from ..types import I64, POINTER, VOID, Scalar

_ROWS = 4
"""How many rows of the result are computed at a time: with vectors of 16 their sums fill half of the registers."""


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
    position = c.variable(I64, 0)
    for width in (widest, widest // 4, 1):
        whole = position.value + (n - position.value) // width * width
        with c.loop(position.value, whole, width) as column:
            rows = m // _ROWS * _ROWS
            arguments = (left, row_step, column_step, right, right_step, result, result_step, add)
            with c.loop(0, rows, _ROWS) as row:
                _block(c, scalar, width, _ROWS, row, column, k, *arguments)
            with c.loop(rows, m) as row:
                _block(c, scalar, width, 1, row, column, k, *arguments)
        position.value = whole
    c.give_back()
    return name


def _block(
    c: Builder,
    scalar: Scalar,
    width: int,
    rows: int,
    row: Value,
    column: Value,
    k: Value,
    left: Value,
    row_step: Value,
    column_step: Value,
    right: Value,
    right_step: Value,
    result: Value,
    result_step: Value,
    add: Value,
) -> None:
    sums = [c.variable(scalar.compute, 0.0, width) for _ in range(rows)]
    with c.loop(0, k) as step:
        line = c.load(right, scalar, step * right_step + column, width)
        for number, total in enumerate(sums):
            factor = c.load(left, scalar, (row + number) * row_step + step * column_step)
            total.value = c.fma(c.splat(factor, width), line, total.value)
    for number, total in enumerate(sums):
        place = (row + number) * result_step + column
        with c.when(add != 0):
            total.value = total.value + c.load(result, scalar, place, width)
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
        add: bool,
    ) -> None:
        """`result` (+)= `left` times `right`, of m x k and k x n elements; `sizes` are (m, n, k)."""
        arguments = [*sizes, *left, *right, *result, int(add)]
        c.call(self.name, VOID, [each if isinstance(each, Value) else c.integer(each) for each in arguments])


def scratch(c: Builder, element: ir.Type, count: Value) -> Value:
    """Memory for `count` numbers, to be given back by `free_scratch`."""
    size = 8 if isinstance(element, ir.DoubleType) else 4
    return c.call("malloc", POINTER, [count * size])


def free_scratch(c: Builder, place: Value) -> None:
    """Give memory back."""
    c.call("free", VOID, [place])
