"""The product from which the gradient of a weight comes at `reproducible("batch")`: a tree over samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.backend import is_of_host
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import fresh
from ..._dispatch.gradients.array_derivatives import unrecorded
from ..shape.view import _transpose
from .products import product_of_columns

_MOST = 1 << 22
"""Elements of the products of single samples that recorded and captured passes keep at a time."""


def samples_product(left: Any, right: Any) -> Any:
    """The sum of the outer products of the rows of two tensors, or arrays, of floating-point numbers.

    They are of the shapes (samples, ..., m) and (samples, ..., n); one of them may be a matrix of all rows.
    """
    deeper = left if left.ndim > right.ndim else right
    samples, steps = deeper.shape[0], math.prod(deeper.shape[1:-1])
    if left.ndim != 3 or right.ndim != 3:
        left, right = left.reshape(samples, steps, left.shape[-1]), right.reshape(samples, steps, right.shape[-1])
    if not _are_of_host(left):  # samples are summed up as a tree on the host alone
        rows, others = (each.reshape(samples * steps, each.shape[-1]) for each in (left, right))
        if not isinstance(left, Tensor):
            return product_of_columns(rows, others)
        if unrecorded(left, right):
            return fresh(product_of_columns(rows._array, others._array), left)
        return _transpose(rows, 0, 1) @ others
    if not isinstance(left, Tensor):
        return REPRODUCIBILITY.samples.samples_product(left, right)
    if unrecorded(left, right) and type(left._array) is np.ndarray:
        return fresh(REPRODUCIBILITY.samples.samples_product(left._array, right._array), left)
    return _in_halves(left, right)


def _are_of_host(value: Any) -> bool:
    return is_of_host(type(value._array if isinstance(value, Tensor) else value))


def _in_halves(left: Tensor, right: Tensor) -> Tensor:
    """Sum over samples in the bits of the kernel, made of ops that have derivatives."""
    samples, _, rows = left._array.shape
    middle = samples // 2
    if middle and samples * rows * right._array.shape[2] > _MOST:
        return _in_halves(left[:middle], right[:middle]) + _in_halves(left[middle:], right[middle:])
    return _transpose(left, 1, 2).bmm(right).sum(0)
