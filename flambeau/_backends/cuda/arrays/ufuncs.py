"""NumPy's ufuncs on device arrays: each becomes a kernel for the dtypes that it meets, or goes to the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.cuda.elementwise import can_write
from ...._codegen.cuda.types import TYPES
from ...._codegen.expr import Program, Step
from ..elementwise.pointwise import Pointwise
from ..linalg.products import product
from .array import DeviceArray
from .host import by_library_or_host

_SAME_TYPES = frozenset(("select", "ldexp"))
_compiled: dict[tuple[Any, ...], Pointwise | None] = {}


def call(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any = None, dtype: Any = None) -> Any:
    """A ufunc of arrays and numbers, of which at least one is on the device."""
    if len(inputs) == 2 and out is None and dtype is None:  # the usual case, quickly
        x, y = inputs
        if type(x) is DeviceArray and type(y) is DeviceArray:
            found = _compiled.get((ufunc, None, None, x.form.dtype, y.form.dtype))
            if found is not None:
                return found.binary(x, y)
    types: list[Any] = [ufunc, dtype, None if out is None else out.form.dtype]
    for each in inputs:
        if type(each) is DeviceArray:
            types.append(each.form.dtype)
        elif isinstance(each, np.ndarray):
            if each.ndim:
                raise TypeError(f"{ufunc.__name__}: an array of the host, of shape {each.shape}, meets one on cuda")
            types.append(each.dtype)
        else:
            types.append(each.dtype if isinstance(each, np.generic) else type(each))
    compiled = function(*types)
    if compiled is None:
        if ufunc is np.matmul and (multiplied := product(*inputs)) is not None:
            if out is None:
                return multiplied
            out[...] = multiplied
            return out
        kwargs = {} if dtype is None else {"dtype": dtype}
        return by_library_or_host(ufunc, inputs, kwargs if out is None else {**kwargs, "out": out})
    for number, each in enumerate(inputs):
        if type(each) is int:  # one that does not fit is an error, as in NumPy
            wanted = compiled.operands[number]
            if (wanted.kind in "iu" and not -128 <= each < 128) or (wanted.kind == "u" and each < 0):
                wanted.type(each)
    if out is None:
        return compiled.many(*inputs)[0]
    shape = out.form.shape
    shapes = [each.form.shape for each in inputs if type(each) is DeviceArray and each.form.shape != shape]
    if shapes and (common := np.broadcast_shapes(shape, *shapes)) != shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {shape} doesn't match the broadcast shape {common}"
        )
    store(compiled, out, inputs)
    return out


def function(ufunc: np.ufunc, dtype: Any, out: Any, *given: Any) -> Pointwise | None:
    """The kernel of a ufunc for operands of given types, computed in `dtype` and written as `out`, if these are named;
    None: there is no code for it.
    """
    key = ufunc, dtype, out, *given
    try:
        return _compiled[key]
    except KeyError:
        compiled = _compiled[key] = _compile(*key)
        return compiled


def store(compiled: Pointwise, target: DeviceArray, operands: tuple[Any, ...]) -> None:
    """Compute into `target`. What overlaps it in another way than element by element is read before it is written."""
    owner = target if target.base is None else target.base
    for each in operands:
        if (
            type(each) is DeviceArray
            and (each if each.base is None else each.base) is owner
            and (each.pointer != target.pointer or each.form.strides != target.form.strides)
        ):
            operands = tuple([one.copy("K") if type(one) is DeviceArray else one for one in operands])
            break
    compiled.into((target,), operands)


def _compile(ufunc: np.ufunc, dtype: Any, out: Any, *given: Any) -> Pointwise | None:
    if ufunc.nout != 1 or ufunc.signature is not None or any(_is_unknown(each) for each in given):
        return None
    options: dict[str, Any] = {} if dtype is None else {"signature": (*[None] * ufunc.nin, np.dtype(dtype))}
    *wanted, result = ufunc.resolve_dtypes((*map(_weak, given), None), **options)
    steps: list[Step] = []
    numbers, memory = [], []
    for each, needed in zip(given, wanted, strict=True):
        own = each if isinstance(each, np.dtype) else needed
        memory.append(own)
        steps.append(("input", own.name, len(memory) - 1))
        if own != needed:
            steps.append(("cast", needed.name, len(steps) - 1))
        numbers.append(len(steps) - 1)
    name = ufunc.__name__
    if len({steps[number][1] for number in numbers}) > 1 and name not in _SAME_TYPES:
        return None
    steps.append((name, result.name, *numbers))
    target = result if out is None else out
    if target != result:
        steps.append(("cast", target.name, len(steps) - 1))
    program = Program(tuple(steps), (len(steps) - 1,))
    if not all(step[1] in TYPES for step in steps) or not can_write(program):
        return None
    return Pointwise(program, memory, [target])


def _weak(given: Any) -> Any:
    return np.dtype(bool) if given is bool else given


def _is_unknown(given: Any) -> bool:
    return not isinstance(given, np.dtype) and given not in (int, float, bool, complex)


# ----- moves: what reads elements and writes them as another type -----------------------------------------------------

_casts: dict[tuple[Any, Any], Pointwise | None] = {}


def cast(source: np.dtype[Any], target: np.dtype[Any]) -> Pointwise | None:
    """Reads elements of one type and writes them as another; None: one of them is not known to generated code."""
    try:
        return _casts[source, target]
    except KeyError:
        found = None
        if source.name in TYPES and target.name in TYPES:
            steps: tuple[Step, ...] = (("input", source.name, 0),)
            if source != target:
                steps += (("cast", target.name, 0),)
            found = Pointwise(Program(steps, (len(steps) - 1,)), [source], [target])
        return _casts.setdefault((source, target), found)


_selections: dict[tuple[Any, ...], Pointwise] = {}


def selection(condition: np.dtype[Any], chosen: Any, other: Any, result: np.dtype[Any]) -> Pointwise | None:
    """Reads a condition and two operands, and writes one of them as `result`."""
    key = condition, chosen, other, result
    found = _selections.get(key)
    if found is None:
        if not all(each.name in TYPES for each in key):
            return None
        steps: list[Step] = [("input", each.name, number) for number, each in enumerate((condition, chosen, other))]
        numbers = []
        for number, wanted in enumerate((np.dtype(bool), result, result)):
            if steps[number][1] != wanted.name:
                steps.append(("cast", wanted.name, number))
                number = len(steps) - 1
            numbers.append(number)
        steps.append(("select", result.name, *numbers))
        program = Program(tuple(steps), (len(steps) - 1,))
        found = _selections[key] = Pointwise(program, [condition, chosen, other], [result])
    return found
