"""Elementwise functions on device arrays: programs, compiled for the dtypes and layouts that they meet.

`Pointwise` has the methods of the CPU's (`../cpu/pointwise.py`), so that what fuses bodies there does so here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.elementwise import (
    FLAT,
    NUMBER,
    SINGLE,
    THREADS,
    can_write,
    flat_source,
    strided_source,
    vector_width,
)
from ...._codegen.cuda.types import TYPES
from ...._codegen.expr import Program, Untraceable, computed_type, trace_body
from ...._core.geometry.layout import joint_dimensions
from ..arrays.array import DeviceArray, dense_like, form_of, of_form
from ..runtime.driver import Launch, driver

MOST_VARIANTS = 64
"""A body whose constants differ from call to call is not worth compiling again and again."""

_MOST_BYTES = 1 << 31
_ALIGNED = 15
_MOST_WALKS = 1024
"""So many combinations of layouts are remembered for each function."""


class _Walk(NamedTuple):
    """A kernel for arrays of certain shapes and strides, and what it is told about these."""

    launch: Launch
    blocks: int
    elements: int
    pack: Callable[..., bytes]
    numbers: tuple[int, ...]
    """What follows the addresses."""
    aligned: _Walk | None
    """The one for addresses that are multiples of 16, if there is a better one."""


class _Call(NamedTuple):
    """What a call for operands of certain layouts needs."""

    forms: list[Any]
    """Of the results: arrays share them."""
    walk: _Walk | None


class Pointwise:
    """A program over arrays and numbers; `operands` are the dtypes of these in memory."""

    __slots__ = (
        "_calls",
        "_codes",
        "_flat",
        "_strides",
        "_walks",
        "memory",
        "operands",
        "program",
        "results",
        "width",
    )

    def __init__(self, program: Program, operands: Sequence[np.dtype[Any]], results: Sequence[np.dtype[Any]]) -> None:
        self.program = program
        self.operands = tuple(operands)
        self.results = tuple(results)
        self.memory = tuple(dtype.name for dtype in (*results, *operands))
        self.width = vector_width(self.memory)
        self._codes = [_field_of(dtype) for dtype in operands]
        self._flat: dict[tuple[str, int], tuple[Launch, Any]] = {}
        self._strides: dict[tuple[str, int, bool, int], tuple[Launch, Any]] = {}
        self._walks: dict[tuple[Any, ...], _Walk] = {}
        self._calls: dict[tuple[Any, ...], _Call] = {}

    # ----- the calls of those who fuse bodies -----------------------------------------------------------------------

    def unary(self, x: Any) -> DeviceArray:
        """The result for one array."""
        key = x.layout
        call = self._calls.get(key) or self._prepared(key, (x,))
        made = of_form(call.forms[0])
        walk = call.walk
        if walk is not None:
            place, given = made.pointer, x.pointer
            if walk.aligned is not None and not (place | given) & _ALIGNED:
                walk = walk.aligned
            walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, place, given, *walk.numbers))
        return made

    def binary(self, x: Any, y: Any) -> DeviceArray:
        """The result for two operands, of which one may be a number."""
        if type(x) is not DeviceArray:
            return self.many(x, y)[0]
        key: tuple[Any, ...]
        given: float
        if type(y) is DeviceArray:
            given = y.pointer
            key, aligned = (x.layout, y.layout), x.pointer | given
        elif self._codes[1] == "d":
            key, given, aligned = (x.layout, None), float(y), x.pointer
        else:
            return self.many(x, y)[0]
        call = self._calls.get(key) or self._prepared(key, (x, y))
        made = of_form(call.forms[0])
        walk = call.walk
        if walk is not None:
            place = made.pointer
            if walk.aligned is not None and not (place | aligned) & _ALIGNED:
                walk = walk.aligned
            walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, place, x.pointer, given, *walk.numbers))
        return made

    def many(self, *operands: Any) -> tuple[DeviceArray, ...]:
        """The results for any operands. A ValueError, as NumPy's, if their shapes do not fit."""
        layout: list[Any] = []
        values: list[Any] = []
        together = 0
        for each, code in zip(operands, self._codes):  # noqa: B905  (as many as the program has)
            if type(each) is DeviceArray:
                place = each.pointer
                layout.append(each.layout)
                values.append(place)
                together |= place
            else:
                layout.append(None)
                if code == "d":
                    values.append(float(each))
                else:
                    _add_number(values, each, code)
        key = tuple(layout)
        forms, walk = self._calls.get(key) or self._prepared(key, operands)
        results, places = [], []
        for form in forms:
            made = of_form(form)
            place = made.pointer
            together |= place
            results.append(made)
            places.append(place)
        if walk is not None:
            if walk.aligned is not None and not together & _ALIGNED:
                walk = walk.aligned
            walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, *places, *values, *walk.numbers))
        return tuple(results)

    def call_for(self, operands: Sequence[Any]) -> _Call:
        """What `results_of` needs of operands with the layouts of these."""
        return self._call_for(operands)

    def results_of(self, call: _Call, operands: Sequence[Any]) -> list[DeviceArray]:
        """`many` by a call that `call_for` has prepared for operands of these layouts."""
        forms, walk = call
        if walk is None:
            return [of_form(form) for form in forms]
        values: list[Any] = []
        together = 0
        for each, code in zip(operands, self._codes):  # noqa: B905  (as many as the program has)
            if type(each) is DeviceArray:
                place = each.pointer
                together |= place
                values.append(place)
            else:
                _add_number(values, each, code)
        made = of_form(forms[0])
        place = made.pointer
        together |= place
        if len(forms) == 1:
            if walk.aligned is not None and not together & _ALIGNED:
                walk = walk.aligned
            walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, place, *values, *walk.numbers))
            return [made]
        results, places = [made], [place]
        for form in forms[1:]:
            made = of_form(form)
            results.append(made)
            places.append(made.pointer)
            together |= made.pointer
        if walk.aligned is not None and not together & _ALIGNED:
            walk = walk.aligned
        walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, *places, *values, *walk.numbers))
        return results

    def _prepared(self, key: tuple[Any, ...], operands: Sequence[Any]) -> _Call:
        """What calls for operands of such shapes and strides need, from now on found by `key`."""
        if len(self._calls) >= _MOST_WALKS:
            self._calls.clear()
        call = self._calls[key] = self._call_for(operands)
        return call

    def _call_for(self, operands: Sequence[Any]) -> _Call:
        """The forms of the results, and how they are walked through; nothing is where there are no elements."""
        arrays = [each.form for each in operands if type(each) is DeviceArray]
        shape = arrays[0].shape
        if any(form.shape != shape for form in arrays):
            shape = np.broadcast_shapes(*[form.shape for form in arrays])
        model = next((form for form in arrays if form.shape == shape), None)
        forms = []
        for dtype in self.results:
            strides = None
            if model is not None and not model.flags.c_contiguous:
                strides = tuple([step // model.itemsize * dtype.itemsize for step in dense_like(model)])
            forms.append(form_of(shape, dtype, strides))
        given = [each.form if type(each) is DeviceArray else None for each in operands]
        return _Call(forms, self._planned(forms, given) if forms[0].size else None)

    def strides_for(self, operands: Sequence[Any]) -> list[tuple[int, ...]]:
        """The strides of the results of `many` for such operands."""
        return [form.strides for form in self._call_for(operands).forms]

    def into(self, results: Sequence[Any], operands: Sequence[Any]) -> None:
        """Compute into arrays that are there already."""
        if not results[0].form.size:
            return
        layout: list[Any] = []
        values: list[Any] = []
        together = 0
        for each in results:
            place = each.pointer
            layout.append(each.layout)
            values.append(place)
            together |= place
        for each, code in zip(operands, self._codes):  # noqa: B905  (as many as the program has)
            if type(each) is DeviceArray:
                place = each.pointer
                layout.append(each.layout)
                values.append(place)
                together |= place
            else:
                layout.append(None)
                _add_number(values, each, code)
        key = tuple(layout)
        walk = self._walks.get(key)
        if walk is None:
            if len(self._walks) >= _MOST_WALKS:
                self._walks.clear()
            given = [each.form if type(each) is DeviceArray else None for each in operands]
            walk = self._walks[key] = self._planned([each.form for each in results], given)
        if walk.aligned is not None and not together & _ALIGNED:
            walk = walk.aligned
        walk.launch(walk.blocks, THREADS, walk.pack(walk.elements, *values, *walk.numbers))

    def between(self, results: Sequence[Any], operands: Sequence[Any]) -> Callable[..., None]:
        """What computes into arrays of the forms `results` from such of `operands`, given the addresses of all."""
        walk = self._planned(results, operands)

        def run(*places: int) -> None:
            together = 0
            for place in places:
                together |= place
            own = walk if walk.aligned is None or together & _ALIGNED else walk.aligned
            own.launch(own.blocks, THREADS, own.pack(own.elements, *places, *own.numbers))

        return run

    # ----- plans ----------------------------------------------------------------------------------------------------

    def _planned(self, results: Sequence[Any], operands: Sequence[Any]) -> _Walk:
        """How arrays of these layouts are walked through: as if they had no gaps, in packs, or one by one.

        `results` and `operands` are forms; None stands for a number.
        """
        arrays = [*results, *[form for form in operands if form is not None]]
        target = results[0]
        sizes, strides = collapsed(target.shape, arrays)
        items = [form.itemsize for form in arrays]
        forms = "".join([NUMBER if form is None else FLAT for form in operands])
        last = [steps[-1] for steps in strides]
        beside = [step == item for step, item in zip(last, items, strict=True)]
        single = [not step and number >= len(results) for number, step in enumerate(last)]
        aligned = None
        if all(one or other for one, other in zip(beside, single, strict=True)):
            kinds = iter(single[len(results) :])
            packed = "".join([form if form == NUMBER else SINGLE if next(kinds) else FLAT for form in forms])
            if len(sizes) == 1:
                if self.width > 1:
                    aligned = self._without_gaps(target.size, packed, self.width)
                return self._without_gaps(target.size, packed, 1, aligned)
            aligned = self._in_packs(target.size, sizes, strides, items, packed, single)
        return self._strided(target.size, sizes, strides, forms, 1, aligned)

    def _without_gaps(self, count: int, forms: str, width: int, aligned: _Walk | None = None) -> _Walk:
        entry = self._flat.get((forms, width))
        if entry is None:
            launch = _compiled(lambda: flat_source(self.program, self.memory, forms, width), aligned is not None)
            entry = self._flat[forms, width] = launch, self._fields(forms, "").pack
        return _Walk(entry[0], -(-(count // width + 1) // THREADS), count, entry[1], (), aligned)

    def _in_packs(
        self, count: int, sizes: list[int], strides: list[list[int]], items: list[int], forms: str, single: list[bool]
    ) -> _Walk | None:
        """The walk by packs of 16 bytes along the last dimension, if all of them can begin at multiples of it."""
        width = self.width
        rows = [steps[:-1] for steps, one in zip(strides, single, strict=True) if not one]
        if width == 1 or sizes[-1] % width or any(step % 16 for steps in rows for step in steps):
            return None
        sizes = [*sizes[:-1], sizes[-1] // width]
        strides = [
            [*steps[:-1], 0 if one else item * width] for steps, item, one in zip(strides, items, single, strict=True)
        ]
        return self._strided(count // width, sizes, strides, forms, width)

    def _strided(
        self, count: int, sizes: list[int], strides: list[list[int]], forms: str, width: int,
        aligned: _Walk | None = None,
    ) -> _Walk:  # fmt: skip
        wide = count >= _MOST_BYTES or any(
            sum([abs(step) * size for step, size in zip(steps, sizes, strict=True)]) >= _MOST_BYTES for steps in strides
        )
        key = forms, len(sizes), wide, width
        numbers = (*sizes, *[step for steps in strides for step in steps])
        entry = self._strides.get(key)
        if entry is None:
            launch = _compiled(lambda: strided_source(self.program, self.memory, *key), aligned is not None)
            entry = self._strides[key] = launch, self._fields(forms, "q" * len(numbers)).pack
        return _Walk(entry[0], -(-count // THREADS), count, entry[1], numbers, aligned)

    def _fields(self, forms: str, after: str) -> Struct:
        codes = [code if form == NUMBER else "Q" for code, form in zip(self._codes, forms, strict=True)]
        return Struct(f"=q{'Q' * len(self.results)}{''.join(codes)}{after}")


def _compiled(source: Callable[[], str], when_needed: bool) -> Launch:
    """A kernel; `when_needed`: it is compiled with its first launch, since most programs never come to that."""
    if not when_needed:
        return driver().compile(source())
    compiled: list[Launch] = []

    def launch(blocks: int, threads: int, fields: bytes) -> None:
        if not compiled:
            compiled.append(driver().compile(source()))
        compiled[0](blocks, threads, fields)

    return launch


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
    sizes, strides = joint_dimensions([shape[axis] for axis in order], [[row[axis] for axis in order] for row in table])
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


def kernel_for(
    program: Program, operands: Sequence[np.dtype[Any]], results: Sequence[np.dtype[Any]]
) -> Pointwise | None:
    """The compiled form of a program whose results are of several dtypes; None: there is no code for it."""
    if not can_write(program) or not all(each.name in TYPES for each in (*operands, *results)):
        return None
    return Pointwise(program, operands, results)
