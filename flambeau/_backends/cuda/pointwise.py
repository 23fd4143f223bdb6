"""Elementwise functions on device arrays: programs, compiled for the dtypes and layouts that they meet.

`Pointwise` has the methods of the CPU's (`../cpu/pointwise.py`), so that what fuses bodies there does so here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from ..._codegen.cuda.elementwise import (
    FLAT,
    NUMBER,
    SINGLE,
    THREADS,
    can_write,
    flat_source,
    strided_source,
    vector_width,
)
from ..._codegen.cuda.types import TYPES
from ..._codegen.expr import Program, Untraceable, computed_type, trace_body
from .array import DeviceArray, dense_like, empty
from .driver import Launch, driver

MOST_VARIANTS = 64
"""A body whose constants differ from call to call is not worth compiling again and again."""

_MOST_BYTES = 1 << 31
_ALIGNED = 15


class Pointwise:
    """A program over arrays and numbers; `operands` are the dtypes of these in memory."""

    __slots__ = ("_codes", "_flat", "_strided", "memory", "operands", "program", "results", "width")

    def __init__(self, program: Program, operands: Sequence[np.dtype[Any]], results: Sequence[np.dtype[Any]]) -> None:
        self.program = program
        self.operands = tuple(operands)
        self.results = tuple(results)
        self.memory = tuple(dtype.name for dtype in (*results, *operands))
        self.width = vector_width(self.memory)
        self._codes = [_field_of(dtype) for dtype in operands]
        self._flat: dict[tuple[str, int], tuple[Launch, Any]] = {}
        self._strided: dict[tuple[str, int, bool], tuple[Launch, Any]] = {}

    # ----- the calls of those who fuse bodies -----------------------------------------------------------------------

    def unary(self, x: Any) -> DeviceArray:
        """The result for one array."""
        return self.many(x)[0]

    def binary(self, x: Any, y: Any) -> DeviceArray:
        """The result for two operands, of which one may be a number."""
        if type(x) is not DeviceArray or type(y) is not DeviceArray:
            return self.many(x, y)[0]
        first, second = x.form, y.form  # the usual case, quickly
        count = first.size
        if first.shape != second.shape or not (first.flags.c_contiguous and second.flags.c_contiguous) or not count:
            return self.many(x, y)[0]
        made = empty(first.shape, self.results[0])
        width = 1 if (made.pointer | x.pointer | y.pointer) & _ALIGNED else self.width
        entry = self._flat.get(("cc", width)) or self._compiled("cc", width)
        fields = entry[1](count, made.pointer, x.pointer, y.pointer)
        entry[0](-(-(count // width + 1) // THREADS), THREADS, fields)
        return made

    def _compiled(self, forms: str, width: int) -> tuple[Launch, Any]:
        launch = driver().compile(flat_source(self.program, self.memory, forms, width))
        entry = self._flat[forms, width] = launch, self._fields(forms, "").pack
        return entry

    def many(self, *operands: Any) -> tuple[DeviceArray, ...]:
        """The results for any operands. A ValueError, as NumPy's, if their shapes do not fit."""
        first = None
        alike = True
        for each in operands:
            if type(each) is DeviceArray:
                form = each.form
                if first is None:
                    first = form
                    shape = form.shape
                    alike = form.flags.c_contiguous
                elif alike and (form.shape != shape or not form.flags.c_contiguous):
                    alike = False
        assert first is not None
        if alike:
            results = tuple([empty(shape, dtype) for dtype in self.results])
            if first.size:
                self._run_flat(first.size, results, operands, None)
            return results
        arrays = [each for each in operands if type(each) is DeviceArray]
        if any(each.form.shape != shape for each in arrays):
            shape = np.broadcast_shapes(*[each.form.shape for each in arrays])
        model = next((each.form for each in arrays if each.form.shape == shape), None)
        made = []
        for dtype in self.results:
            strides = None
            if model is not None and not model.flags.c_contiguous:
                strides = tuple([step // model.itemsize * dtype.itemsize for step in dense_like(model)])
            made.append(empty(shape, dtype, strides))
        self.into(made, operands)
        return tuple(made)

    def flat(self, forms: str) -> Callable[..., Any]:
        """The kernel for operands without gaps."""
        count = len(self.results)

        def run(*arrays: Any) -> Any:
            self._run_flat(arrays[0].form.size, arrays[:count], arrays[count:], None)
            return arrays[0]

        return run

    def into(self, results: Sequence[Any], operands: Sequence[Any], forms: str | None = None) -> None:
        """Compute into arrays that are there already."""
        target = results[0].form
        count = target.size
        if not count:
            return
        arrays = [*results, *[each for each in operands if type(each) is DeviceArray]]
        shape = target.shape
        for each in arrays:
            form = each.form
            if form.shape != shape or not form.flags.c_contiguous:
                break
        else:
            self._run_flat(count, results, operands, None)
            return
        sizes, strides = collapsed(target.shape, [each.form for each in arrays])
        if len(sizes) <= 1 and all(
            step[0] == each.form.itemsize or (step[0] == 0 and number >= len(results))
            for number, (each, step) in enumerate(zip(arrays, strides, strict=True))
        ):
            singles = iter([step[0] == 0 for step in strides[len(results) :]])
            forms = "".join(
                [NUMBER if type(each) is not DeviceArray else SINGLE if next(singles) else FLAT for each in operands]
            )
            self._run_flat(count, results, operands, forms)
        else:
            self._run_strided(count, results, operands, sizes, strides)

    # ----- launches -------------------------------------------------------------------------------------------------

    def _run_flat(self, count: int, results: Sequence[Any], operands: Sequence[Any], forms: str | None) -> None:
        values: list[Any] = [count]
        together = 0
        for each in results:
            values.append(each.pointer)
            together |= each.pointer
        found = ""
        for number, each in enumerate(operands):
            if type(each) is DeviceArray:
                values.append(each.pointer)
                together |= each.pointer
                found += FLAT
            else:
                _add_number(values, each, self._codes[number])
                found += NUMBER
        width = 1 if together & _ALIGNED else self.width
        forms = forms or found
        entry = self._flat.get((forms, width)) or self._compiled(forms, width)
        entry[0](-(-(count // width + 1) // THREADS), THREADS, entry[1](*values))

    def _run_strided(
        self,
        count: int,
        results: Sequence[Any],
        operands: Sequence[Any],
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> None:
        values: list[Any] = [count, *[each.pointer for each in results]]
        forms = ""
        for number, each in enumerate(operands):
            if type(each) is DeviceArray:
                values.append(each.pointer)
                forms += FLAT
            else:
                _add_number(values, each, self._codes[number])
                forms += NUMBER
        values += sizes
        wide = count >= _MOST_BYTES
        for steps in strides:
            values += steps
            wide = wide or sum([abs(step) * size for step, size in zip(steps, sizes, strict=True)]) >= _MOST_BYTES
        key = forms, len(sizes), wide
        entry = self._strided.get(key)
        if entry is None:
            launch = driver().compile(strided_source(self.program, self.memory, *key))
            entry = self._strided[key] = launch, self._fields(forms, "q" * (len(sizes) * (1 + len(strides)))).pack
        entry[0](-(-count // THREADS), THREADS, entry[1](*values))

    def _fields(self, forms: str, after: str) -> Struct:
        codes = [code if form == NUMBER else "Q" for code, form in zip(self._codes, forms, strict=True)]
        return Struct(f"=q{'Q' * len(self.results)}{''.join(codes)}{after}")


def _field_of(dtype: np.dtype[Any]) -> str:
    """How a number of `dtype` stands among the fields of a kernel's arguments."""
    if dtype.kind in "iub":
        return "Q" if dtype.name == "uint64" else "q"
    return "dd" if dtype.kind == "c" else "d"


def _add_number(values: list[Any], number: Any, code: str) -> None:
    if code == "dd":
        number = complex(number)
        values += (number.real, number.imag)
    else:
        values.append(float(number) if code == "d" else int(number))


def collapsed(shape: tuple[int, ...], forms: Sequence[Any]) -> tuple[list[int], list[list[int]]]:
    """The fewest dimensions in which arrays that broadcast to `shape` can be walked through, and their strides there.

    The first array is the result: dimensions are in the order of its strides, the longest first.
    """
    dims = len(shape)
    table = []
    for form in forms:
        missing = dims - form.ndim
        own = zip(form.shape, form.strides, shape[missing:], strict=True)
        table.append([0] * missing + [0 if size == 1 and full != 1 else step for size, step, full in own])
    order = [axis for axis in range(dims) if shape[axis] != 1]
    order.sort(key=lambda axis: -abs(table[0][axis]))
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in forms]
    for axis in order:
        size = shape[axis]
        if sizes and all(row[-1] == steps[axis] * size for row, steps in zip(strides, table, strict=True)):
            sizes[-1] *= size
            for row, steps in zip(strides, table, strict=True):
                row[-1] = steps[axis]
        else:
            sizes.append(size)
            for row, steps in zip(strides, table, strict=True):
                row.append(steps[axis])
    if not sizes:
        return [1], [[form.itemsize] for form in forms]
    return sizes, strides


def pointwise(body: Callable[..., Any], operands: Sequence[Any], result: np.dtype[Any]) -> Pointwise | None:
    """The compiled form of `body`, or None if there is no code for what it does.

    Operands that are dtypes become arrays or numbers of a call; others are constants, handed to the body as they are.
    All results are of dtype `result`.
    """
    memory = [each for each in operands if isinstance(each, np.dtype)]
    if not all(dtype.name in TYPES and dtype.isnative for dtype in (*memory, result)):
        return None
    try:
        program = trace_body(body, [computed_type(each) if isinstance(each, np.dtype) else each for each in operands])
    except Untraceable:
        return None
    if not can_write(program):
        return None
    return Pointwise(program.stored_as(computed_type(result).name), memory, [result] * len(program.results))
