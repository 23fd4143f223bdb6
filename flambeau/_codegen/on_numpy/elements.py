"""Elementwise kernels, run by NumPy: see `elements/pointwise.py` and `elements/multi.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..expr import Program
from ..lower import run_program
from ..types import SCALARS, Scalar
from .builder import Evaluator
from .sums import folded, in_order

Array = Any
_BLOCK = 16384


def computed(program: Program, scalars: Sequence[Scalar], operands: Sequence[Any]) -> list[tuple[Evaluator, Any]]:
    """The results of a program of arrays and numbers, of which `scalars` are the types."""
    b = Evaluator()
    given = []
    for scalar, operand in zip(scalars, operands, strict=True):
        if isinstance(operand, np.ndarray):
            given.append(b.load_from(operand, scalar))
        else:
            value = b.constant(scalar.compute, operand)
            value.signed = scalar.is_signed
            given.append(value)
    with np.errstate(all="ignore"):
        return [(b, value) for value in run_program(b, program, given, 1)]


def pointwise_flat(program: Program, memory: tuple[str, ...], forms: str) -> Callable[..., Array]:
    """Operands without gaps, of one shape, or numbers."""
    scalars = [SCALARS[name] for name in memory]
    count = len(program.results)

    def run(*arguments: Any) -> Array:
        results, operands = arguments[:count], list(arguments[count:])
        for number, (form, each) in enumerate(zip(forms, operands, strict=True)):
            if form == "1":
                operands[number] = each.reshape(-1)[:1].reshape(())
            elif form == "c" and each.shape != results[0].shape:
                operands[number] = each.reshape(results[0].shape)
        return _stored(program, scalars, results, operands)

    return run


def pointwise_strided(program: Program, memory: tuple[str, ...]) -> Callable[..., Array]:
    """Operands of any strides that broadcast to the shape of the results."""
    scalars = [SCALARS[name] for name in memory]
    count = len(program.results)
    return lambda *arguments: _stored(program, scalars, arguments[:count], arguments[count:])


def _stored(program: Program, scalars: Sequence[Scalar], results: Sequence[Array], operands: Sequence[Any]) -> Array:
    found = computed(program, scalars[len(results) :], operands)
    for result, scalar, (b, value) in zip(results, scalars, found, strict=False):
        b.store_into(result, scalar, value)
    return results[0]


def update_list(
    dtype: str, tensors: int, numbers: int, program: Program, changed: tuple[int, ...]
) -> Callable[..., Any]:
    """(done, refused, *numbers, *arrays): run a program on lists of arrays, and store its results in some of them."""
    scalar = SCALARS[dtype]

    def run(done: Any, refused: Any, *arguments: Any) -> Any:
        values, arrays = arguments[:numbers], arguments[numbers:]
        rows = len(arrays) // tensors
        for row in range(rows):
            own = arrays[row::rows]
            if any(each.shape != own[0].shape for each in own) or any(not own[at].flags.writeable for at in changed):
                return refused
        for row in range(rows):
            own = arrays[row::rows]
            found = computed(program, [scalar] * (tensors + numbers), [*own, *map(float, values)])
            for at, (b, value) in zip(changed, found, strict=True):
                b.store_into(own[at], scalar, value)
        return done

    return run


def square_sums(dtype: str) -> Callable[..., Array]:
    """(sums, *arrays): the sums of squares of arrays."""
    scalar = SCALARS[dtype]
    width = 64 // max(scalar.size, 4)

    def run(sums: Array, *arrays: Array) -> Array:
        for number, array in enumerate(arrays):
            b = Evaluator()
            values = b.load_from(array.ravel("K"), scalar).ir.array
            squares = values * values
            total = np.zeros(())
            for start in range(0, squares.size, _BLOCK):
                block = squares[start : start + _BLOCK]
                whole = block.size // width * width
                lanes = in_order(block[:whole].reshape(-1, width), 0).astype(np.float64)
                total = total + (folded(lanes) + in_order(block[whole:], 0).astype(np.float64))
            sums[number] = total
        return sums

    return run
