"""Constants that Python made from sizes: ranges, identity matrices, sizes as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._graph import Graph, Value
from ._sizes import Fitting, Size
from .errors import SymbolicValueError

Array = np.ndarray[Any, Any]


def constant_of_sizes(g: Graph, fitting: Fitting, arrays: Sequence[Array], shape: tuple[int, ...]) -> Value:
    """A tensor that was seen to hold `arrays`: a constant, or one of the forms that can be computed from sizes."""
    first = arrays[0]
    if all(each.shape == first.shape and each.tobytes() == first.tobytes() for each in arrays):
        return g.const(first)
    if all(each.shape == first.shape for each in arrays):
        return _of_sizes(g, fitting, arrays)
    if first.ndim == 1:
        found = _evenly_spaced(g, fitting, arrays, shape[0])
        if found is not None:
            return found
    if all(each.ndim == 2 and np.array_equal(each, np.eye(*each.shape, dtype=each.dtype)) for each in arrays):
        rows, columns = g.count_up(shape[0]), g.count_up(shape[1])
        return g.cast(g.op("Equal", g.unsqueeze(rows, 1), columns, dtype=bool), first.dtype)
    raise SymbolicValueError(
        "a tensor that is made of Python's numbers depends on the sizes of the inputs: make it of tensors"
    )


def _of_sizes(g: Graph, fitting: Fitting, arrays: Sequence[Array]) -> Value:
    """Integers, each a function of the sizes."""
    first = arrays[0]
    values: list[int] = []
    if first.dtype.kind in "iuf" and all((each == np.round(each)).all() for each in arrays):
        for seen in zip(*[each.ravel().tolist() for each in arrays], strict=True):
            size = fitting.size(tuple(int(each) for each in seen))
            if size is None:
                break
            values.append(size)
    if len(values) < first.size:
        raise SymbolicValueError("a tensor that is made of Python's numbers depends on the sizes of the inputs")
    made = g.cast(g.ints(values), first.dtype)
    return g.op("Reshape", made, g.const(np.array(first.shape, np.int64)))


def _evenly_spaced(g: Graph, fitting: Fitting, arrays: Sequence[Array], length: int) -> Value | None:
    """`arange`, whose start and step are the same at all sizes, or `linspace`, whose ends are."""
    first = arrays[0]
    if first.dtype.kind not in "iuf" or any(each.size < 2 for each in arrays):
        return None
    places = g.cast(g.count_up(length), first.dtype)
    start, step = first[0], first[1] - first[0]
    if first.dtype.kind != "f":
        starts, steps = [int(each[0]) for each in arrays], {int(each[1]) - int(each[0]) for each in arrays}
        begin = fitting.size(tuple(starts))
        if begin is not None and len(steps) == 1 and all(_is_range(each, each[0], step) for each in arrays):
            made = places if step == 1 else g.op("Mul", places, int(step))
            return g.op("Add", made, begin) if isinstance(begin, Size) or begin else made
        return None
    if all(_is_range(each, start, step) for each in arrays):
        return g.op("Add", g.op("Mul", places, float(step)), float(start))
    end = first[-1]
    if all(_is_range(each, start, (end - start) / (each.size - 1)) for each in arrays):
        gaps = g.cast(g.scalar(length - 1), first.dtype)
        return g.op("Add", g.op("Div", g.op("Mul", places, float(end - start)), gaps), float(start))
    return None


def _is_range(array: Array, start: Any, step: Any) -> bool:
    return bool(np.allclose(array, start + np.arange(array.size) * step, rtol=1e-5, atol=1e-6))
