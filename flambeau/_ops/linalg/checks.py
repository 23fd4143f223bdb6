"""What the ops of linear algebra share: their error class, their checks of arguments, the memory order of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.backend import read, to_host
from ..._core.dtype import FLOAT, LEGACY_NAMES, complex64, complex128, float32, float64
from ..._core.tensor import Tensor
from ..._dispatch.host_read import check
from ..._dispatch.op import Array
from ..._dispatch.public.registry import export


class LinAlgError(RuntimeError):
    """A matrix for which the result does not exist: singular, not positive-definite, not finite."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # what PyTorch prints before the message
export(LinAlgError, "linalg.LinAlgError")


_PRECISE = frozenset((float32, float64, complex64, complex128))
"""The dtypes that LAPACK computes in."""


def check_kernel(kernel: str, A: Tensor) -> None:
    """Refuse the dtypes for which LAPACK has no routine; `kernel` is PyTorch's name for it."""
    if A._kind.dtype not in _PRECISE:
        raise NotImplementedError(f'"{kernel}" not implemented for {LEGACY_NAMES[A._kind.dtype]!r}')


def check_floating(name: str, A: Tensor, kernel: str = "") -> None:
    """Refuse integers and, where a `kernel` is named, half precision."""
    if A._kind.dtype.category < FLOAT:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {LEGACY_NAMES[A._kind.dtype]}"
        )
    if kernel:
        check_kernel(kernel, A)


def check_precise(name: str, A: Tensor) -> None:
    """Refuse integers and half precision."""
    check_floating(name, A)
    if A._kind.dtype not in _PRECISE:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {LEGACY_NAMES[A._kind.dtype]}")


def check_matrix(name: str, A: Tensor, argument: str = "A") -> None:
    """Refuse what is not a matrix or a batch of matrices."""
    if not isinstance(A, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be Tensor, not {type(A).__name__}")
    if A._array.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions. Its shape is {list(A._array.shape)}."
        )


def check_square(name: str, A: Tensor, argument: str = "A") -> None:
    """Refuse what is not a square matrix or a batch of them."""
    check_matrix(name, A, argument)
    rows, columns = A._array.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def check_same_dtype(name: str, A: Tensor, B: Tensor) -> None:
    """Refuse two matrices of different dtypes."""
    if A._kind.dtype is not B._kind.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {LEGACY_NAMES[A._kind.dtype]} and "
            f"B of type {LEGACY_NAMES[B._kind.dtype]} instead"
        )


_FAILURES = {
    "inv": (
        "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular."
    ),
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order {0} is not positive-definite)."
    ),
    "lu_factor": (
        "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    ),
    "ldl_factor": (
        "D[{0},{0}] is exactly zero: solving with these factors would divide by zero. linalg.ldl_factor_ex gives them "
        "without this check."
    ),
    "": "Unknown error code: {0}.",
}
"""What a code that is not zero says, by the part of a function's name that tells what it computes."""


@check("check_codes")
def check_codes(info: Array, caller: str) -> None:
    """Refuse to go on where a matrix of a batch failed: its code is not zero."""
    _raise_code(info, caller)


@check("check_diagonal")
def check_diagonal(matrix: Array, caller: str) -> None:
    """Refuse triangular matrices that have no inverse: an element of the diagonal is zero."""
    zeros = np.diagonal(matrix, 0, -2, -1) == 0
    if zeros.size and read(zeros.any()):
        _raise_code(np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0), caller)


def _raise_code(info: Array, caller: str) -> None:
    if not read(info.any()):
        return
    position = int(np.flatnonzero(to_host(info))[0])
    place = f"(Batch element {position}): " if info.ndim else ""
    part = next(part for part in _FAILURES if part in caller)
    error = LinAlgError if part in ("inv", "solve", "cholesky") else RuntimeError
    raise error(f"{caller}: {place}{_FAILURES[part].format(int(read(info.reshape(-1)[position])))}")


def row_major(array: Any) -> Any:
    """A contiguous copy of `array`; its strides are exact, also where a size is 1."""
    copied = np.empty(array.shape, array.dtype, like=array)
    copied[...] = array
    return copied


@check("check_pivots")
def check_pivots(pivots: Array, rows: int, caller: str) -> None:
    """Refuse swaps of rows, counted from 1, with rows that are not there."""
    if not pivots.size:
        return
    numbers = np.abs(pivots.astype(np.int64)) if caller == "ldl_solve" else pivots
    low, high = read(numbers.min() < 1), read(numbers.max() > rows)
    if caller == "lu_unpack" and (low or high):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result "
            f"of lu_factor? LU.size(-2) is {rows}"
        )
    if low or high:
        rule = "be smaller or equal to LU.size(-2)" if high and not low else "be greater or equal to 1"
        if caller == "ldl_solve":
            rule = "satisfy |pivot| <= LD.size(-2)" if high and not low else "satisfy |pivot| >= 1"
        factor = caller.replace("solve", "factor")
        raise RuntimeError(
            f"Pivots given to {caller} must all {rule}. Did you properly pass the result of {factor}? There are {rows} "
            "rows"
        )


def column_major(array: Any) -> Any:
    """A copy of `array` with the columns of its matrices contiguous, as LAPACK leaves them."""
    return row_major(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def by_columns(array: Any) -> Any:
    """`array` itself where that is new and has the columns of its matrices contiguous, else such a copy."""
    new = array.base
    whole = type(new) is np.ndarray and new.base is None and new.size == array.size and 1 not in array.shape
    return array if whole and array.swapaxes(-1, -2).flags.c_contiguous else column_major(array)


def batch_shape(name: str, A: Tensor, B: Tensor) -> tuple[int, ...]:
    """The shape to which the batch dimensions of two tensors of matrices broadcast."""
    one, two = A._array.shape[:-2], B._array.shape[:-2]
    try:
        return joint_shape(one, two)
    except ValueError:
        raise RuntimeError(
            f"{name}: the batch dimensions {list(one)} and {list(two)} of the shapes {list(A._array.shape)} and "
            f"{list(B._array.shape)} do not broadcast: sizes must be equal, or one of them 1. The size of tensor a "
            "must match the size of tensor b at non-singleton dimension"
        ) from None
