"""nll_loss and cross_entropy by generated kernels.

Functions take arrays and give arrays, or None where no kernel fits: other dtypes, arrays without elements, or targets
that are no classes, about which NumPy's way is explicit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.rows.losses import BLOCK, NONE, cross_entropy_forward, nll_loss_backward, nll_loss_forward
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import name_of_type
from .rows import is_short

Array = Any

_DOUBLE = np.dtype(np.float64)
_INDICES = {np.dtype(np.int64): "int64", np.dtype(np.uint8): "uint8"}


_made: dict[Any, Any] = {}
"""Kernels by the dtypes of their arrays and the reduction: found with one look."""


def _find(kernel: Any, x: Array, target: Array, weight: Array | None, reduction: int, *more: bool) -> Any:
    dtype = x.dtype
    key = kernel, dtype, target.dtype, weight is None or weight.dtype, reduction, more
    found = _made.get(key)
    if found is None:
        name, index = name_of_type(dtype), _INDICES.get(target.dtype)
        if name is None or index is None or (weight is not None and weight.dtype is not dtype):
            return None
        found = _made[key] = kernel(name, index, weight is not None, reduction, *more)
    return found


def _sizes(x: Array) -> tuple[int, int, int]:
    """How many samples, classes and places logits have."""
    shape = x.shape
    if len(shape) == 2:
        return shape[0], shape[1], 1
    if len(shape) == 1:
        return 1, shape[0], 1
    return shape[0], shape[1], x.size // (shape[0] * shape[1])


def nll_loss(
    x: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, workspace: Workspace = DIRECT
) -> Array | None:
    """The negative of the log-probabilities that `x` gives to the target classes."""
    if not x.size:
        return None
    kernel = _find(nll_loss_forward, x, target, weight, reduction)
    if kernel is None:
        return None
    source = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    targets = target if target.flags.c_contiguous else target.copy()
    weights = source if weight is None else np.ascontiguousarray(weight)
    work = workspace.empty(2 * -(-target.size // BLOCK) + 1, _DOUBLE)
    result = workspace.empty(target.shape if reduction == NONE else (), x.dtype)
    workspace.run(kernel, result, source, targets, weights, work, *_sizes(x), ignore_index)
    return None if workspace.refuses(work) else result


def cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, workspace: Workspace = DIRECT
) -> Array | None:
    """`nll_loss` of `log_softmax`, which is not kept, of a matrix."""
    if not x.size or x.ndim != 2:
        return None
    samples, classes = x.shape
    short = is_short(samples, classes)
    kernel = _find(cross_entropy_forward, x, target, weight, reduction, short)
    if kernel is None:
        return None
    source = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    targets = target if target.flags.c_contiguous else target.copy()
    weights = source if weight is None else np.ascontiguousarray(weight)
    work = workspace.empty(2 * samples + 1, _DOUBLE)
    result = workspace.empty(target.shape if reduction == NONE else (), x.dtype)
    workspace.run(kernel, result, source, targets, weights, work, samples, classes, ignore_index)
    return None if workspace.refuses(work) else result


def nll_loss_gradient(
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    workspace: Workspace = DIRECT,
) -> Array | None:
    """The gradient of the log-probabilities."""
    if not x.size or grad.dtype is not x.dtype:
        return None
    kernel = _find(nll_loss_backward, x, target, weight, reduction)
    if kernel is None:
        return None
    targets = target if target.flags.c_contiguous else target.copy()
    coming = grad if grad.flags.c_contiguous else grad.copy()
    weights = coming if weight is None else np.ascontiguousarray(weight)
    result = workspace.zeros(x.shape, x.dtype)
    return workspace.run(kernel, result, coming, targets, weights, *_sizes(x), ignore_index)
