"""Products of float32 by `sgemm` with the same bits for any number of threads: those of `reproducible("threads")`.

The library divides a product, and its sums too, by the number of its threads. Here it is called by each thread for
itself, for parts of the result that follow from the shapes alone.

The functions have the names and arguments of those in `kernels.py`, and return None for what is not done here.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.products.shared import Entry, shared_sgemm
from ...._core.process.processor import ON_X86_64
from ...tiers import compiles
from ..memory.workspace import DIRECT, Workspace
from .calls import place
from .gemm import step_of
from .kernels import free_idle_memory
from .library import Unsupported, get
from .memory import Shape

__all__ = ["free_idle_memory", "product"]

_SINGLE = np.dtype(np.float32)
_LEAST = 1 << 15
"""Up to so many multiplications NumPy's library is called: it has the shorter way."""
_WORTH, _MOST_PARTS = 1 << 24, 16
"""So many multiplications are a part, a third of a millisecond of a thread."""
_FEWEST = 96
"""A part has at least so many rows or columns: the library copies the other matrix for each part."""
_GRAIN = 1 << 22


class _Plan(NamedTuple):
    shape: Shape
    table: Any


def available() -> bool:
    """Whether products can be computed in this way here."""
    try:
        library = get()
    except Unsupported:
        return False
    return ON_X86_64 and compiles() and library.ask_threads is not None


def product(left: Any, right: Any, addend: Any = None, workspace: Workspace = DIRECT) -> Any:
    """The product of two matrices; every row plus `addend`, a vector, where there is one."""
    if left.ndim != 2 or right.ndim != 2 or left.dtype != _SINGLE or right.dtype != _SINGLE:
        return None
    if not left.flags.aligned or not right.flags.aligned:
        return None
    plan = _plan(left.shape, left.strides, right.shape, right.strides)
    if plan is None:
        return None
    result = workspace.empty(plan.shape, _SINGLE)
    if addend is not None:
        if workspace is not DIRECT:
            return None
        result[...] = addend
    if workspace is DIRECT:
        get().stream()  # the calling thread has as many threads as it should
    workspace.run(shared_sgemm(addend is not None), result, left, right, plan.table)
    return result


def _does_nothing(*arguments: Any, **options: Any) -> None:
    """For what NumPy's library or generated kernels have to do."""


correlate = correlate_transposed = weight_gradient = products_of_batch = product_of_rows = multiplier = _does_nothing


@functools.lru_cache(maxsize=512)
def _plan(left: Shape, left_strides: Shape, right: Shape, right_strides: Shape) -> _Plan | None:
    one, other = step_of(left, left_strides), step_of(right, right_strides)
    (rows, length), columns = left, right[1]
    count = rows * length * columns
    if one is None or other is None or right[0] != length or count < _LEAST:
        return None
    library, item = get(), _SINGLE.itemsize
    rows_each, columns_each = _division(rows, columns, count, other[0] == "T")
    by_rows = columns_each == columns
    parts = -(-rows // rows_each) * -(-columns // columns_each)
    entries = {
        Entry.MULTIPLY: place(library.sgemm), Entry.GET_THREADS: place(library.ask_threads),
        Entry.SET_THREADS: library.tell_threads, Entry.LEFT_TURNS: ord(one[0]), Entry.RIGHT_TURNS: ord(other[0]),
        Entry.LEFT_STEP: one[1], Entry.RIGHT_STEP: other[1], Entry.OUT_STEP: columns, Entry.ROWS: rows,
        Entry.COLUMNS: columns, Entry.LENGTH: length, Entry.ROWS_EACH: rows_each, Entry.COLUMNS_EACH: columns_each,
        Entry.PARTS: parts, Entry.PRODUCTS: 1, Entry.INNER: 1,
        Entry.LEFT_PART: rows_each * left_strides[0] if by_rows else 0,
        Entry.RIGHT_PART: 0 if by_rows else columns_each * right_strides[1],
        Entry.OUT_PART: (rows_each * columns if by_rows else columns_each) * item,
        Entry.GRAIN: max(1, _GRAIN * parts // count), Entry.ERROR: id(RuntimeError),
    }  # fmt: skip
    return _Plan((rows, columns), np.array([entries.get(each, 0) for each in Entry], np.int64))


def _division(rows: int, columns: int, count: int, turns: bool) -> tuple[int, int]:
    """The rows and columns of a part of the result, which has all of one of them.

    Columns are divided where the right matrix has to be turned, which each part would do with the whole of it.
    """
    parts = min(_MOST_PARTS, max(1, count // _WORTH))
    if turns or columns > rows:
        return rows, min(columns, max(_FEWEST, -(-columns // parts)))
    return min(rows, max(_FEWEST, -(-rows // parts))), columns
