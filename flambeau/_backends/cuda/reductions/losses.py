"""The loss of classes and the gradient of embeddings on the device. None: no kernel fits, and the reference runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.losses import (
    MEAN,
    NONE,
    THREADS,
    embedding_backward_source,
    nll_backward_source,
    nll_source,
    small_nll_backward_source,
)
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, dense, empty, zeros
from ..indexing.row_sums import order_of
from ..runtime.driver import driver

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_INDICES = frozenset(("int64", "int32", "uint8"))
_MOST = 1 << 17
"""So many targets are left to one block."""
_FEW, _FEW_ELEMENTS = 4096, 1 << 18
"""Of so many targets and elements the gradient is one launch, in which every block looks at all targets."""


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


def _sizes(shape: tuple[int, ...], size: int) -> tuple[int, int, int]:
    """How many samples, classes and places logits have."""
    if len(shape) == 1:
        return 1, shape[0], 1
    return shape[0], shape[1], size // (shape[0] * shape[1])


def _fits(x: DeviceArray, target: DeviceArray, weight: Any) -> bool:
    same = weight is None or weight.dtype == x.dtype
    return bool(x.size and same and name_of(x.dtype) in _FLOATS and name_of(target.dtype) in _INDICES)


_FORWARD, _BACKWARD = Struct("=qqqQQQqQQQ"), Struct("=qqqQQQqQQ")


def _run_forward(
    x: DeviceArray, target: DeviceArray, weight: Any, reduction: int, ignored: int
) -> tuple[DeviceArray, DeviceArray]:
    """The loss, and the weights of all targets together."""
    x, target = dense(x), dense(target)
    weights = x if weight is None else dense(weight)
    result = empty(target.shape if reduction == NONE else (), x.dtype)
    total = empty((), np.dtype(np.float64 if name_of(x.dtype) == "float64" else np.float32))
    fields = _FORWARD.pack(
        *_sizes(x.shape, x.size), x.pointer, target.pointer, weights.pointer, ignored, result.pointer, total.pointer,
        driver().faults("nll_loss"),
    )  # fmt: skip
    launch = _kernel(nll_source, name_of(x.dtype), name_of(target.dtype), weight is not None, reduction)
    if reduction == NONE:
        launch(-(-target.size // THREADS), THREADS, fields)
    else:
        launch(1, driver().block_threads(THREADS), fields)
    return result, total


def nll_loss(x: DeviceArray, target: DeviceArray, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The negative of the log-probabilities that `x` gives to the target classes."""
    if not _fits(x, target, weight) or (reduction != NONE and target.size > _MOST):
        return None
    return _run_forward(x, target, weight, reduction, ignore_index)[0]


def nll_loss_gradient(
    grad: DeviceArray, x: DeviceArray, target: DeviceArray, weight: Any, reduction: int, ignore_index: int
) -> Any:
    """The gradient of the log-probabilities."""
    if not _fits(x, target, weight) or grad.dtype != x.dtype or (reduction == MEAN and target.size > _MOST):
        return None
    grad, target = dense(grad), dense(target)
    weights = grad if weight is None else dense(weight)
    names = name_of(x.dtype), name_of(target.dtype)
    small = reduction == MEAN and target.size <= _FEW and x.size <= _FEW_ELEMENTS
    total = _run_forward(x, target, weight, reduction, ignore_index)[1] if reduction == MEAN and not small else None
    result = empty(x.shape, x.dtype) if small else zeros(x.shape, x.dtype)
    fields = _BACKWARD.pack(
        *_sizes(x.shape, x.size),
        grad.pointer,
        target.pointer,
        weights.pointer,
        ignore_index,
        result.pointer,
        0 if total is None else total.pointer,
    )
    if small:
        threads = driver().block_threads(THREADS)
        launch = _kernel(small_nll_backward_source, *names, weight is not None)
        launch(-(-x.size // threads), threads, fields)
    else:
        launch = _kernel(nll_backward_source, *names, weight is not None, reduction)
        launch(-(-target.size // THREADS), THREADS, fields)
    return result


_OF_ROWS = Struct("=qqQQQqQqq").pack


def embedding_backward(
    grad_output: DeviceArray, indices: DeviceArray, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of the rows, each the sum over the places that it was taken to, in their order."""
    name, index = name_of(grad_output.dtype), name_of(indices.dtype)
    if scale_grad_by_freq or name not in _FLOATS or index not in _INDICES or not grad_output.size:
        return None
    width = grad_output.shape[-1]
    grad, rows = dense(grad_output), dense(indices).reshape(-1)
    count = rows.form.size
    order = order_of(rows)
    made = zeros((num_weights, width), grad.dtype)
    blocks = -(-width // THREADS)
    fields = _OF_ROWS(
        count, width, grad.pointer, rows.pointer, order.pointer, padding_idx, made.pointer, blocks, num_weights
    )
    _kernel(embedding_backward_source, name, index)(blocks * count, THREADS, fields)
    return made
