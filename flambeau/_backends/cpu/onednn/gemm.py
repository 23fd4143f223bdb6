"""Products of two matrices of float32 by `sgemm`, the library's function with the interface of BLAS.

On x86-64 it adds up in blocks, for most shapes in the order of PyTorch's library, and has its bits. The primitives of
`matmul.py` add up one by one: they are less accurate for long rows, and slower but where `suits` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.process.processor import ON_X86_64
from ..memory.workspace import DIRECT, Workspace
from .calls import place
from .library import get
from .memory import Array, address, new_array
from .warm_up import are_being_written, import_meanwhile

_SINGLE = np.dtype(np.float32)
_FEW_ROWS, _MUCH_TO_TURN = 64, 1 << 18
_NARROW, _LONG, _VERY_LONG = 512, 512, 4096


def suits(left: Array, right: Array) -> bool:
    """Whether this is the quickest way to a product.

    It is not where a large matrix is turned for a few rows, nor where the left one is for a narrow result.
    """
    if not ON_X86_64 or left.dtype != _SINGLE or right.dtype != _SINGLE:
        return False
    one, other = _step(left), _step(right)
    if one is None or other is None or not left.flags.aligned or not right.flags.aligned:
        return False
    if other[0] == b"T":
        is_long = left.shape[1] > _VERY_LONG
        return one[0] == b"N" and (left.shape[0] > _FEW_ROWS or right.size <= _MUCH_TO_TURN or is_long)
    return one[0] == b"N" or right.shape[1] > _NARROW or left.shape[1] < _LONG


def gemm(left: Array, right: Array, workspace: Workspace = DIRECT) -> Array:
    """The product of two matrices that it suits."""
    library = get()
    (rows, length), columns = left.shape, right.shape[1]
    (turns_left, left_step), (turns_right, right_step) = _known(left), _known(right)
    result = new_array((rows, columns), _SINGLE, workspace=workspace)
    if workspace is DIRECT:
        if are_being_written():
            import_meanwhile()
        library.stream()  # the calling thread has as many threads as it should
        library.call(
            "sgemm", turns_left, turns_right, rows, columns, length, 1.0, address(left), left_step, address(right),
            right_step, 0.0, address(result), columns,
        )  # fmt: skip
        return result
    from ...._codegen.machine.product_call import product_call  # call lists are where code is generated

    if library.ask_threads is not None:
        workspace.holds_while(place(library.ask_threads), library.threads())
    table = np.array([
        place(library.sgemm), id(RuntimeError), turns_left[0], turns_right[0], rows, columns, length, left_step,
        right_step, columns,
    ], np.int64)  # fmt: skip
    workspace.run(product_call(), result, left, right, table)
    return result


def _step(matrix: Array) -> tuple[bytes, int] | None:
    """Whether a matrix lies by rows ("N") or by columns ("T"), and how many elements are from one to the next."""
    (rows, columns), (down, across), item = matrix.shape, matrix.strides, matrix.itemsize
    if across == item and down >= columns * item and not down % item:
        return b"N", down // item
    if down == item and across >= rows * item and not across % item:
        return b"T", across // item
    return None


def _known(matrix: Any) -> tuple[bytes, int]:
    found = _step(matrix)
    assert found is not None
    return found
