"""Products of two matrices of float32 by `sgemm`, the library's function with the interface of BLAS.

On x86-64 it adds up in blocks, for most shapes in the order of PyTorch's library, and has its bits. The primitives of
`matmul.py` add up one by one: they are less accurate for long rows, and slower but where `suits` says so.
"""

from __future__ import annotations

import functools
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


def suits(left: Array, right: Array) -> bool:
    """Whether this is the quickest way to a product.

    It is not where a large matrix is turned for a few rows, nor where the left one is for a narrow result of many rows.
    """
    if not ON_X86_64 or left.dtype != _SINGLE or right.dtype != _SINGLE:
        return False
    if not left.flags.aligned or not right.flags.aligned:
        return False
    return _is_quickest(left.shape, left.strides, right.shape, right.strides)


def gemm(left: Array, right: Array, addend: Array | None = None, workspace: Workspace = DIRECT) -> Array:
    """The product of two matrices that it suits; every row plus `addend`, a vector without gaps."""
    library = get()
    shape = left.shape[0], right.shape[1]
    result: Array = workspace.empty(shape, _SINGLE)
    if workspace is DIRECT:
        if are_being_written():
            import_meanwhile()
        library.stream()  # the calling thread has as many threads as it should
    elif library.ask_threads is not None:
        workspace.holds_while(place(library.ask_threads), library.threads())
    table = _table(library, shape, left.strides, right.shape, right.strides)
    kernel = _kernel(addend is not None)
    if kernel is None:
        if addend is not None:
            result[...] = addend
        turns_left, turns_right, rows, columns, length, left_step, right_step, step = table.tolist()[2:]
        library.call(
            "sgemm", turns_left, turns_right, rows, columns, length, 1.0, address(left), left_step, address(right),
            right_step, float(addend is not None), address(result), step,
        )  # fmt: skip
    elif addend is None:
        workspace.run(kernel, result, left, right, table)
    else:
        workspace.run(kernel, result, left, right, table, addend)
    return result


@functools.cache
def _kernel(adds: bool) -> Any:
    """What calls the library in a quarter of the time that Python takes for it; None: no code is generated here."""
    if not compiles():
        return None
    from ...._codegen.machine.product_call import product_call

    return product_call(adds)


@functools.lru_cache(maxsize=CAPACITY)
def _table(library: Any, result: Shape, strides: Shape, other: Shape, other_strides: Shape) -> Array:
    """What the kernel `product_call` has to know of two matrices."""
    turns_left, left_step = _known((result[0], other[0]), strides)
    turns_right, right_step = _known(other, other_strides)
    numbers = ord(turns_left), ord(turns_right), *result, other[0], left_step, right_step, result[1]
    return np.array([place(library.sgemm), id(RuntimeError), *numbers], np.int64)


@functools.lru_cache(maxsize=CAPACITY)
def _is_quickest(shape: Shape, strides: Shape, other: Shape, other_strides: Shape) -> bool:
    one, second = step_of(shape, strides), step_of(other, other_strides)
    if one is None or second is None:
        return False
    length, columns = other
    if second[0] == "T":
        is_long = length > _VERY_LONG
        return one[0] == "N" and (shape[0] > _FEW_ROWS or length * columns <= _MUCH_TO_TURN or is_long)
    return one[0] == "N" or columns > _NARROW or length < _LONG or length > shape[0]


def step_of(shape: Shape, strides: Shape) -> tuple[str, int] | None:
    """Whether a matrix lies by rows ("N") or by columns ("T"), and how many elements are from one to the next."""
    (rows, columns), (down, across), item = shape, strides, _SINGLE.itemsize
    if across == item and down >= columns * item and not down % item:
        return "N", down // item
    if down == item and across >= rows * item and not across % item:
        return "T", across // item
    return None


def _known(shape: Shape, strides: Shape) -> tuple[str, int]:
    found = step_of(shape, strides)
    assert found is not None
    return found
