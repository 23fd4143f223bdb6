"""Attention whose memory grows with the length of the sequence, not with its square."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._codegen.products.attention import attention_backward, attention_forward, attention_of_few_queries
from ...._core.arrays.quick import broadcast
from ...._core.backend import LARGE
from ...._core.geometry.layout import element_strides, is_plain, preserved_strides
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..elementwise.copy import contiguous
from ..memory.workspace import DIRECT, Workspace
from ..reductions.reduce import reduced
from ..runtime.dtypes import FULL_NAMES, only_gradient, wide

_FEW = 4
"""So many queries are quicker one by one than together."""


def _serves(mask: Any, *arrays: Any) -> bool:
    """Whether there are kernels for such arrays (batch, head, row, column) and a mask."""
    dtype = arrays[0].dtype
    if dtype not in FULL_NAMES or (mask is not None and mask.dtype != dtype):
        return False
    item = dtype.itemsize
    for each in arrays:
        if each.dtype != dtype or each.ndim != 4 or (each.strides[3] != item and each.shape[3] != 1):
            return False
    return True


def _has_rows(array: Any) -> bool:
    """Whether the elements of a row are neighbours."""
    return bool(array.shape[-1] == 1 or array.strides[-1] == array.itemsize)


def _mask_for(mask: Any, query: Any, key: Any) -> Any:
    """The mask with a value for each query and key; any array where there is none."""
    if mask is None:
        return query
    wanted = (*query.shape[:3], key.shape[2])
    spread = broadcast(mask, wanted)
    return spread if _has_rows(spread) else contiguous(spread)


def _factor(scale: float | None, width: int) -> float:
    return (1 / math.sqrt(width) if width else 1.0) if scale is None else scale


def attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
    workspace: Workspace = DIRECT,
) -> tuple[Any, Any] | None:
    """The result, and the logarithms of the sums of exponentials."""
    is_full = query.dtype in FULL_NAMES
    q, k, v = (query, key, value) if is_full else (wide(query), wide(key), wide(value))
    mask = None if attn_mask is None else wide(attn_mask)
    if not _serves(mask, q, k, v):
        return None
    if is_plain(query):
        output = workspace.empty(query.shape, query.dtype)
    else:
        output = workspace.arranged(query.shape, preserved_strides(query.shape, element_strides(query)), query.dtype)
    direct = output if is_full else workspace.empty(q.shape, q.dtype)
    sums = workspace.empty(q.shape[:3], q.dtype)
    few = q.shape[2] <= _FEW and REPRODUCIBILITY.product is None  # a query gives the same bits alone as among others
    family = attention_of_few_queries if few else attention_forward
    kernel = family(FULL_NAMES[q.dtype], is_causal, mask is not None, "" if is_full else query.dtype.name)
    result, seen = direct, sums
    if q.shape[1] != k.shape[1]:
        if few and not is_causal and _see_the_same(mask) and q.flags.c_contiguous and direct.flags.c_contiguous:
            # Queries of the heads that share a key are queries of one head.
            shape = (q.shape[0], k.shape[1], -1, q.shape[3])
            result, seen, q = direct.reshape(shape), sums.reshape(shape[:3]), q.reshape(shape)
        else:
            k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    workspace.run(kernel, result, seen, q, k, v, _mask_for(mask, q, k), _factor(scale, q.shape[-1]))
    if direct is not output:
        output[...] = direct
    return output, sums


def _see_the_same(mask: Any) -> bool:
    """Whether all queries and heads of a sample see the same keys."""
    return mask is None or (mask.shape[-2] == 1 and (mask.ndim == 2 or mask.shape[1] == 1))


def _repeated(array: Any, heads: int) -> Any:
    """Each head as often as makes so many of them, one copy after the other."""
    batch, own, length, width = array.shape
    spread = broadcast(array[:, :, None], (batch, own, heads // own, length, width))
    return contiguous(spread).reshape(batch, heads, length, width)


def attention_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    query: Any,
    key: Any,
    value: Any,
    *rest: Any,
    workspace: Workspace = DIRECT,
) -> list[Any] | None:
    """The gradients of query, key and value; `rest` is what else the op `attention_backward` is given."""
    _, is_causal, attn_mask, scale, output, logsumexp = rest
    grad = only_gradient(grads)
    if grad is None or grad.dtype != query.dtype or not _serves(attn_mask, query, key, value, output):
        return None
    own = key.shape
    if query.shape[1] != own[1]:
        if workspace is not DIRECT:
            return None
        key, value = _repeated(key, query.shape[1]), _repeated(value, query.shape[1])
    # Of keys that no query sees, nothing is written.
    seen = query.size and key.size and not (is_causal and query.shape[2] < key.shape[2])
    make = workspace.empty if seen else workspace.zeros
    found = [make(each.shape, each.dtype) for each in (query, key, value)]
    if not _has_rows(grad):
        grad = contiguous(grad)
    kernel = attention_backward(FULL_NAMES[query.dtype], is_causal, attn_mask is not None)
    mask, factor = _mask_for(attn_mask, query, key), _factor(scale, query.shape[-1])
    sums = contiguous(logsumexp)
    workspace.run(kernel, *found, query, key, value, output, grad, mask, sums, factor)
    return found if key.shape == own else [found[0], *[_summed(each, own) for each in found[1:]]]


def _summed(array: Any, shape: tuple[int, ...]) -> Any:
    """The sums over the heads that share one of `shape`."""
    batch, own, length, width = shape
    parts = array.reshape(batch, own, array.shape[1] // own, length, width)
    done = reduced("add", parts, (2,), array.dtype) if array.size >= LARGE else None
    return np.add.reduce(parts, 2) if done is None else done
