"""Products of arrays, by whichever kernel is the quickest for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..._backends import arrays
from ..._backends.arrays import FEW_ROWS, LEAST_OF_LIBRARY
from ..._core.backend import FUNCTIONS, is_of_host
from ..._core.process.processor import ON_X86_64
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.process.threads import num_threads

_SINGLE = np.dtype(np.float32)

_MOST = 512**3
"""Up to so many multiplications, a generated kernel may do it: see `_backends/cpu/linalg/matmul.py`."""
_FEWEST_ROWS = 4
_LONG, _PIECE, _SMALL = 1024, 256, 100**3
_FEW_LONG = 256**3
"""Up to so many multiplications of long rows NumPy's kernels are quicker than generated ones on one thread."""


def array_dot(left: Any, right: Any) -> Any:
    """`np.dot`, of at most two dimensions each."""
    if type(left) is ndarray is type(right) and left.ndim == 2 == right.ndim:
        if REPRODUCIBILITY.product is not None:
            return REPRODUCIBILITY.product(left, right)
        if left.size * right.shape[1] <= LEAST_OF_LIBRARY:
            if left.shape[1] < _LONG:
                return left.dot(right) if left.shape[1] > 1 else _product_of_vectors(left, right)
        elif left.shape[0] > FEW_ROWS and left.dtype is _SINGLE is right.dtype:  # nearly all gradients of layers
            library = FUNCTIONS[ndarray]["library_product"]
            done = None if library is None else library(left, right)
            if done is not None:
                return done
    elif type(left) is not ndarray and not is_of_host(type(left)):
        done = arrays.library_product(left, right) if left.ndim == 2 == right.ndim else None
        return np.dot(left, right) if done is None else done
    if left.ndim == 2 == right.ndim:
        if left.size * right.shape[1] > LEAST_OF_LIBRARY:
            done = _quick_product(left, right)
            if done is not None:
                return done
        if ON_X86_64 and left.shape[1] >= _LONG:
            return matrix_product(left, right)
    if type(left) is not ndarray or type(right) is not ndarray:
        return np.dot(left, right)
    if REPRODUCIBILITY.product is not None:
        return REPRODUCIBILITY.product(left, right)
    if left.ndim == 2 == right.ndim:
        if 0 in left.strides or 0 in right.strides:
            return _product_of_repeated(left, right)
        return arrays.matmul(left, right)
    return _product_of_vectors(left, right)


def _product_of_vectors(left: Any, right: Any) -> Any:
    """A product of which an operand may be a single element: if that is zero, `dot` overlooks NaN in the other one."""
    return np.matmul(left, right) if left.size == 1 or right.size == 1 else left.dot(right)


def product_plus(left: Any, right: Any, addend: Any) -> Any:
    """`left @ right + addend`, of two matrices and a vector.

    The library adds what stands in the result already: so that is first the addend, as in PyTorch, with the same bits.
    """
    if REPRODUCIBILITY.product is None and left.dtype == right.dtype == addend.dtype == _SINGLE:
        rows, columns = left.shape[0], right.shape[1]
        fits = addend.shape == (columns,) and addend.flags.c_contiguous and type(addend) is type(left)
        if fits and rows > FEW_ROWS and left.size * columns > LEAST_OF_LIBRARY and is_of_host(type(left)):
            done = arrays.library_product(left, right, addend)
            if done is not None:
                return done
    return arrays.increased(array_dot(left, right), addend)


def half_product_plus(left: Any, right: Any, addend: Any) -> Any:
    """`left @ right + addend` of 16-bit floats, two matrices and a vector, rounded once; None: no library does it."""
    if REPRODUCIBILITY.product is not None or left.ndim != 2 or right.ndim != 2 or not is_of_host(type(left)):
        return None
    if type(addend) is not type(left) or addend.shape != right.shape[1:]:
        return None
    if not left.dtype == right.dtype == addend.dtype:
        return None
    return arrays.library_product(left, right, addend)


def rows_product(rows: Any, matrix: Any) -> Any:
    """The product of all rows of an array, which may have any number of dimensions before the last, and a matrix."""
    if rows.ndim == 2:
        return array_dot(rows, matrix)
    if not is_of_host(type(rows)) and (done := arrays.library_product(rows, matrix)) is not None:
        return done
    return array_dot(rows.reshape(-1, rows.shape[-1]), matrix).reshape(*rows.shape[:-1], matrix.shape[1])


def product_of_columns(left: Any, right: Any) -> Any:
    """`left.T @ right`, of matrices or of all rows of two arrays: the gradient of a linear layer's weight."""
    if type(left) is not ndarray and (done := arrays.product_of_columns(left, right)) is not None:
        return done
    if left.ndim != 2:
        left = left.reshape(-1, left.shape[-1])
    if right.ndim != 2:
        right = right.reshape(-1, right.shape[-1])
    return array_dot(left.T, right)


def _product_of_repeated(left: Any, right: Any) -> Any:
    """The product of matrices that repeat themselves, which NumPy writes out.

    The result comes first: where there is no room for it, nothing is written out in vain.
    """
    result = np.empty((left.shape[0], right.shape[1]), np.result_type(left, right))
    return left.dot(right, result)


def _quick_product(left: Any, right: Any) -> Any:
    """The product of two matrices by other than NumPy's kernels; None: these are as quick."""
    if left.dtype.kind in "iu":
        return integer_product(left, right)
    count, rows = left.size * right.shape[1], left.shape[0]
    by_library = left.dtype == right.dtype == _SINGLE
    done = None
    # The library reads a matrix whose rows lie one after another as quickly for some rows as for one.
    if by_library and _FEWEST_ROWS <= rows <= FEW_ROWS and right.flags.c_contiguous:
        done, by_library = arrays.library_product(left, right), False
    if done is None and rows <= FEW_ROWS:
        done = arrays.product_of_few_rows(left, right)
    if done is not None:
        return done
    if by_library and (done := arrays.library_product(left, right)) is not None:
        return done
    if count > _MOST or (left.shape[1] > _LONG and count <= _FEW_LONG and num_threads() == 1):
        return None
    return arrays.product(left, right)


_EXACT = 2**53
"""Up to here float64 has all integers."""


def integer_product(left: Any, right: Any) -> Any:
    """The product of matrices of integers as one of float64; None: a sum of theirs might not be exact in it."""
    if right.dtype is not left.dtype or not left.size or not right.size:
        return None
    if left.shape[-1] * _reach(left) * _reach(right) > _EXACT:
        return None
    product = arrays.matmul if left.ndim > 2 or right.ndim > 2 else array_dot
    exact = product(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
    return exact.astype(left.dtype, copy=False)  # which wraps around, as sums of narrow integers do


def _reach(integers: Any) -> int:
    return max(int(integers.max()), -int(integers.min()))


def matrix_product(left: Any, right: Any) -> Any:
    """`np.matmul` of matrices, or of batches of them, whose long sums are added up in pieces.

    On x86-64 the library that NumPy brings along has kernels for small products that add up the numbers of a row one by
    one, and rounding errors with them.
    """
    (rows, length), columns = left.shape[-2:], right.shape[-1]
    if (
        REPRODUCIBILITY.product is not None
        or not ON_X86_64
        or length < _LONG
        or rows * length * columns > _SMALL
        or left.dtype.char not in "fF"
    ):
        return arrays.matmul(left, right)
    whole = length - length % _PIECE
    total = np.matmul(
        left[..., :whole].reshape(*left.shape[:-1], -1, _PIECE).swapaxes(-3, -2),
        right[..., :whole, :].reshape(*right.shape[:-2], -1, _PIECE, columns),
    ).sum(-3)
    return total if whole == length else total + np.matmul(left[..., whole:], right[..., whole:, :])
