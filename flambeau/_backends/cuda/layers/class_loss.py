"""Cross entropy of logits and classes for compiled programs, and the products before and behind it.

The logits of a vocabulary are what a language model has most of. Eagerly they, their log-probabilities and the
gradients of both are tensors that a program could look at. A compiled one does not: so the log-probabilities are not
written down, and behind rows of an odd length there are zeros, with which the library multiplies them four times as
fast; eagerly these are copied to and fro.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.class_loss import THREADS, gradient_source, levels_source, total_source
from ...._codegen.cuda.losses import MEAN
from ...._core.arrays.quick import name_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty, window
from ..linalg.products import PACK, product, with_zeros
from ..runtime.driver import driver

_INDICES = frozenset(("int64", "int32"))
_HALVES = frozenset(("float16", "bfloat16"))
_SINGLE = np.dtype(np.float32)
_LEVELS, _TOTAL = Struct("=qqQQqQQQ").pack, Struct("=qQQqQQ").pack
_GRADIENT = Struct("=qqQQqQQQqQ").pack


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


def takes(logits: Any, target: Any) -> bool:
    """Whether there are kernels for arrays like these."""
    if REPRODUCIBILITY.product is not None:
        return False
    rows = target.ndim == 1 and logits.ndim == 2 and logits.shape[0] == target.shape[0]
    return bool(rows and logits.size and name_of(logits.dtype) in _HALVES and name_of(target.dtype) in _INDICES)


# ----- matrices with zeros between their rows -------------------------------------------------------------------------


def _spaced(rows: int, columns: int, dtype: Any) -> DeviceArray:
    """A new matrix, uninitialised, with room for zeros behind each row, so that the next begins where packs do."""
    return _cut(empty((rows, columns + -columns % PACK), dtype), rows, columns)


def _cut(whole: DeviceArray, rows: int, columns: int) -> DeviceArray:
    """A matrix without its last rows and columns."""
    return window(whole, (rows, columns), whole.dtype, 0, whole.strides)


def _whole(spaced: DeviceArray) -> DeviceArray:
    """A matrix with the zeros between its rows."""
    step = spaced.strides[0]
    return window(spaced, (spaced.shape[0], step // spaced.itemsize), spaced.dtype, 0, spaced.strides)


def spaced_product(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    """`left @ right`, with zeros behind each row."""
    rows, columns = left.shape[0], right.shape[1]
    return _cut(_product(left, with_zeros(right, 0, -columns % PACK)), rows, columns)


def product_of_spaced(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    """`left @ right` where `left` has zeros behind each row, or is the transposed of such a matrix."""
    if left.strides[1] == left.itemsize:
        whole = _whole(left)
        return _product(whole, with_zeros(right, whole.shape[1] - right.shape[0], 0))
    found = _product(_whole(left.T).T, right)
    return _cut(found, left.shape[0], right.shape[1])


def _product(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    found = product(left, right)
    assert found is not None, "floats are multiplied"
    return found


# ----- the loss -------------------------------------------------------------------------------------------------------


def _pitch(logits: DeviceArray) -> tuple[DeviceArray, int, int]:
    """Logits whose rows have no gaps inside, how far these are apart, and how many elements are read at a time."""
    if logits.form.strides[1] != logits.itemsize or logits.form.strides[0] < logits.shape[1] * logits.itemsize:
        logits = logits.copy()
    step = logits.form.strides[0] // logits.itemsize
    return logits, step, 1 if step % PACK or logits.pointer & 15 else PACK


def class_loss(
    logits: DeviceArray, target: DeviceArray, reduction: int, ignored: int
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """The loss, and what the gradient needs: the level of each row, and the share that it has in the loss."""
    logits, step, width = _pitch(logits)
    target = target if target.form.flags.c_contiguous else target.copy()
    rows, classes = logits.shape
    levels, losses, share = empty((rows,), _SINGLE), empty((rows,), _SINGLE), empty((), _SINGLE)
    loss = empty((), logits.dtype)
    name, index = name_of(logits.dtype), name_of(target.dtype)
    threads = driver().block_threads(THREADS)
    _kernel(levels_source, name, index, width)(
        rows, threads,
        _LEVELS(classes, step, logits.pointer, target.pointer, ignored, levels.pointer, losses.pointer,
                driver().faults("nll_loss")),
    )  # fmt: skip
    _kernel(total_source, name, index, reduction == MEAN)(
        1, threads, _TOTAL(rows, losses.pointer, target.pointer, ignored, loss.pointer, share.pointer)
    )
    return loss, levels, share


def class_loss_gradient(
    grad: DeviceArray, logits: DeviceArray, target: DeviceArray, levels: DeviceArray, share: DeviceArray, ignored: int
) -> DeviceArray:
    """The gradient of the logits, with zeros behind each row."""
    logits, step, width = _pitch(logits)
    target = target if target.form.flags.c_contiguous else target.copy()
    rows, classes = logits.shape
    result = _spaced(rows, classes, logits.dtype)
    own = result.form.strides[0] // result.itemsize
    _kernel(gradient_source, name_of(logits.dtype), name_of(target.dtype), width)(
        rows, driver().block_threads(THREADS),
        _GRADIENT(classes, step, logits.pointer, target.pointer, ignored, levels.pointer, share.pointer, grad.pointer,
                  own, result.pointer),
    )  # fmt: skip
    return result
