"""From ops on tensors to functions on arrays, with everything decided that kinds and shapes decide."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.backend import LARGE, is_array
from ..._core.device import CPU, device_of_array
from ..._core.dtype import int64
from ..._core.geometry.layout import arranged
from ..._core.kind import kind_of_array
from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from ..._dispatch.call.elementwise import grows
from ..._dispatch.composite import Composite
from ..._dispatch.dispatch import Primitive
from ..._dispatch.elementwise import Elementwise
from ..._dispatch.factory import Factory, constant
from ..._dispatch.op import Op
from ..._dispatch.writer import Writer
from .items import Call, Rewritten, is_usable

Run = Callable[..., Any]

MOST_BYTES = 1 << 21
"""Larger results are computed by calls from Python: the work takes so long that the calls do not matter."""


def lowered(call: Call, takes_any_size: bool = False) -> Run:
    """What computes the arrays of a call's results from the arrays of its arguments; of those of other sizes, too."""
    op = call.op
    if isinstance(call, Rewritten):
        return call.run
    if op is constant:
        return _copied  # the data is part of the program: what it is given may change
    if isinstance(op, Factory):
        return op.kernel
    if isinstance(op, Elementwise):
        return _elementwise(op, call, takes_any_size) or _by_tensors(op)
    if isinstance(op, (Primitive, Composite, Writer)):
        tensors = op.tensors_of(call.examples)
        kinds = {each._kind for each in tensors}
        if tensors and all(map(is_usable, kinds)) and len({each.device for each in kinds}) == 1:
            backend = tensors[0]._kind.backend
            run: Run = backend.runs.get(op) or backend.prepare(op)
            return _or_by_parts(op, run) if isinstance(op, Composite) else run
    return _by_tensors(op.again or op)


def _or_by_parts(op: Op, run: Run) -> Run:
    """A composite op as one; it may decline, by None, what its elements decide, and then runs by its parts."""
    by_parts = _by_tensors(op)

    def whole(*args: Any) -> Any:
        found = run(*args)
        return by_parts(*args) if found is None else found

    return whole


def _copied(array: Any, kind: Any) -> Any:
    if kind.is_cpu:
        return np.array(array)
    return array.copy() if isinstance(array, kind.backend.array_class) else kind.backend.from_host(np.asarray(array))


def _elementwise(op: Elementwise, call: Call, takes_any_size: bool) -> Run | None:
    """The prepared body of an elementwise op; None: operands have to be converted first."""
    first = call.examples[0]
    if not isinstance(first, Tensor):
        return None
    entry = op.table.get(first._kind)
    if entry is None:
        return None
    small, _, large = entry
    run: Run = large if is_large(call) else small
    if takes_any_size and small is not large:
        run = functools.partial(_by_size, small, large)
    if len(call.examples) == 1:
        return run
    other = call.examples[1]
    if isinstance(other, Tensor):
        if other._kind is not first._kind:
            return None
        array, made = first._array, call.made._array
        if made.ndim > 1 and not (array.flags.c_contiguous and array.size == made.size):
            return lambda x, y: arranged(run(x, y), x, y)
        return run
    return run if takes_number(op, first, other, call.made) else None


def _by_size(small: Run, large: Run, first: Any, *others: Any) -> Any:
    """The body that the plain call takes for so many elements."""
    if first.size >= LARGE or any(grows(first, each) for each in others):
        return large(first, *others)
    return small(first, *others)


def is_large(call: Call) -> bool:
    """Whether an elementwise op ran by its body for many elements: by what it was given, or by what came of it."""
    first, *others = [getattr(each, "_array", each) for each in call.examples]
    return first.size >= LARGE or any(grows(first, each) for each in others)


_WHOLE = frozenset(("add", "sub", "mul"))


def takes_number(op: Elementwise, first: Tensor, number: Any, made: Any) -> bool:
    """Whether the body of an op takes a Python number as it stands."""
    if op.tensors_only or type(number) not in (int, float):
        return False
    if first._kind.differentiable:
        return True
    return op.name in _WHOLE and type(number) is int and first._kind.dtype is int64 is made._kind.dtype


def _by_tensors(op: Run) -> Run:
    """An op that is run on tensors, as anywhere else."""

    def run(*args: Any) -> Any:
        modes = THREAD.modes
        grad, modes.grad = modes.grad, False
        try:
            return _unwrapped(op(*[_wrapped(each) for each in args]))
        finally:
            modes.grad = grad

    return run


def _wrapped(value: Any) -> Any:
    if is_array(value):
        place = CPU if type(value) is np.ndarray else device_of_array(value)
        return Tensor._from_parts((value, kind_of_array(value.dtype, place), [0, None]))
    return type(value)([_wrapped(each) for each in value]) if type(value) in (list, tuple) else value


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return type(value)([_unwrapped(each) for each in value]) if type(value) in (list, tuple) else value
