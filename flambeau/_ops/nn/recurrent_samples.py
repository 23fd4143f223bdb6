"""Gradients of the parameters of recurrent layers: sums over the rows of a sequence, of all samples and steps."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..linalg.over_samples import samples_product
from ..linalg.products import array_dot, product_of_columns
from ..shape.join import cat, stack

Sizes = tuple[int, ...]


def _by_samples(rows: Any, sizes: Sizes) -> Any:
    """Rows of a sequence as (samples, steps, features); after its last step a sample has zeros."""
    steps, batch = len(sizes), sizes[0]
    if sizes[-1] == batch:
        return rows.reshape(steps, batch, rows.shape[1]).swapaxes(0, 1)
    blocks = [rows[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]
    if isinstance(rows, Tensor):
        padded = [cat([block, block.new_zeros(batch - len(block), rows.shape[1])], 0) for block in blocks]
        return stack(padded, 1)
    result = np.zeros((batch, steps, rows.shape[1]), rows.dtype)
    for step, block in enumerate(blocks):
        result[: len(block), step] = block
    return result


def weight_product(left: Any, right: Any, sizes: Sizes) -> Any:
    """`left.T @ right`, of the rows of a sequence."""
    if REPRODUCIBILITY.samples is not None and (type(left) is np.ndarray or isinstance(left, Tensor)):
        return samples_product(_by_samples(left, sizes), _by_samples(right, sizes))
    if REPRODUCIBILITY.samples is not None:  # on a device, in whatever order its library sums up samples
        return product_of_columns(left, right)
    return left.T @ right if isinstance(left, Tensor) else array_dot(left.T, right)


def bias_sum(rows: Any, sizes: Sizes) -> Any:
    """The sum of the rows of a sequence."""
    if REPRODUCIBILITY.total is not None and type(rows) is np.ndarray:
        return REPRODUCIBILITY.total(_by_samples(rows, sizes), (0, 1), False)
    if REPRODUCIBILITY.total is not None and isinstance(rows, Tensor):
        return _by_samples(rows, sizes).sum((0, 1))
    return rows.sum(0)
