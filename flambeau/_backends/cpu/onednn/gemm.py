"""Products of two matrices of float32 by `sgemm`, the library's function with the interface of BLAS.

On x86-64 it adds up in blocks, for most shapes in the order of PyTorch's library, and has its bits. The primitives of
`matmul.py` add up one by one: they are less accurate for long rows, and slower for most shapes.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._core.process.processor import ON_X86_64
from ...tiers import compiles
from ..memory.workspace import DIRECT, Workspace
from .calls import place
from .library import get
from .memory import Array, Shape, address
from .primitives import CAPACITY
from .warm_up import are_being_written, import_meanwhile

_SINGLE = np.dtype(np.float32)
_FEW_ROWS, _MUCH_TO_TURN = 64, 1 << 18
_NARROW, _LONG, _VERY_LONG = 512, 512, 4096


def gemm(left: Array, right: Array, addend: Array | None = None, workspace: Workspace = DIRECT) -> Array | None:
    """The product of two matrices; every row plus `addend`, a vector without gaps. None: this is not the quickest way.

    It is not where a large matrix is turned for a few rows, nor where the left one is for a narrow result of many rows.
    """
    if not ON_X86_64 or left.dtype != _SINGLE or right.dtype != _SINGLE:
        return None
    if not left.flags.aligned or not right.flags.aligned:
        return None
    library = get()
    table = _table(library, left.shape, left.strides, right.shape, right.strides)
    if table is None:
        return None
    result: Array = workspace.empty((left.shape[0], right.shape[1]), _SINGLE)
    kernel = _kernel(addend is not None)
    if workspace is DIRECT:
        if are_being_written():
            import_meanwhile()
        library.stream()  # the calling thread has as many threads as it should
        if kernel is not None:
            made: Array = (
                kernel(result, left, right, table) if addend is None else kernel(result, left, right, table, addend)
            )
            return made
    elif library.ask_threads is not None:
        workspace.holds_while(place(library.ask_threads), library.threads())
    if kernel is None:
        if addend is not None:
            result[...] = addend
        turns_left, turns_right, rows, columns, length, left_step, right_step, step = table.tolist()[2:]
        library.call(
            "sgemm", turns_left, turns_right, rows, columns, length, 1.0, address(left), left_step, address(right),
            right_step, float(addend is not None), address(result), step,
        )  # fmt: skip
    else:
        workspace.run(kernel, result, left, right, table, *([] if addend is None else [addend]))
    return result


def product_of_rows(rows: Array, weight: Array, addend: Array | None) -> Array | None:
    """`rows @ weight.T` of arrays without gaps, of which `rows` may have more dimensions than two; every row plus
    `addend`, where there is one: then the result is a matrix. None: this is not the quickest way.
    """
    key = rows.shape, weight.shape, addend is None
    try:
        table, shape, kernel = _ROWS[key]
    except KeyError:
        table, shape, kernel = _ROWS[key] = _for_rows(*key)
    if kernel is None or table is None:
        return None
    if are_being_written():
        import_meanwhile()
    get().stream()  # the calling thread has as many threads as it should
    made: Array
    if addend is None:
        made = kernel(np.empty(shape, _SINGLE), rows, weight, table)
    else:
        made = kernel(np.empty(shape, _SINGLE), rows, weight, table, addend)
    return made


_ROWS: dict[Any, tuple[Array | None, Shape, Any]] = {}


def _for_rows(shape: Shape, other: Shape, alone: bool) -> tuple[Array | None, Shape, Any]:
    """What the kernel has to know of rows and a weight, the shape of the result, and the kernel."""
    if len(_ROWS) >= CAPACITY:
        _ROWS.clear()
    (outputs, length), item = other, _SINGLE.itemsize
    matrix = math.prod(shape[:-1]), length
    strides = length * item, item
    table = _table(get(), matrix, strides, other[::-1], strides[::-1]) if ON_X86_64 and shape[-1] == length else None
    return table, (*shape[:-1], outputs) if alone else (matrix[0], outputs), _kernel(not alone)


@functools.cache
def _kernel(adds: bool) -> Any:
    """What calls the library in a quarter of the time that Python takes for it; None: no code is generated here."""
    if not compiles():
        return None
    from ...._codegen.machine.product_call import product_call

    return product_call(adds)


@functools.lru_cache(maxsize=CAPACITY)
def _table(library: Any, shape: Shape, strides: Shape, other: Shape, other_strides: Shape) -> Array | None:
    """What the kernel `product_call` has to know of two matrices; None: another way to their product is quicker."""
    left, right = step_of(shape, strides), step_of(other, other_strides)
    if left is None or right is None or not _is_quickest(left[0], shape, right[0], other):
        return None
    numbers = ord(left[0]), ord(right[0]), shape[0], other[1], other[0], left[1], right[1], other[1]
    return np.array([place(library.sgemm), id(RuntimeError), *numbers], np.int64)


def _is_quickest(left: str, shape: Shape, right: str, other: Shape) -> bool:
    length, columns = other
    if right == "T":
        is_long = length > _VERY_LONG
        return left == "N" and (shape[0] > _FEW_ROWS or length * columns <= _MUCH_TO_TURN or is_long)
    return left == "N" or columns > _NARROW or length < _LONG or length > shape[0]


def step_of(shape: Shape, strides: Shape) -> tuple[str, int] | None:
    """Whether a matrix lies by rows ("N") or by columns ("T"), and how many elements are from one to the next."""
    (rows, columns), (down, across), item = shape, strides, _SINGLE.itemsize
    if across == item and down >= columns * item and not down % item:
        return "N", down // item
    if down == item and across >= rows * item and not across % item:
        return "T", across // item
    return None
