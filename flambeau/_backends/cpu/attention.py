"""Attention whose memory grows with the length of the sequence, not with its square."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._codegen.attention import attention_backward, attention_forward

_DTYPES = frozenset(("float32", "float64"))


def serves(*arrays: Any) -> bool:
    """Whether there are kernels for such arrays (batch, head, row, column)."""
    return all(
        each is None
        or (each.dtype == arrays[0].dtype and each.dtype.name in _DTYPES and each.ndim == 4 and _has_rows(each))
        for each in arrays
    )


def _has_rows(array: Any) -> bool:
    """Whether the elements of a row are neighbours."""
    return bool(array.shape[-1] == 1 or array.strides[-1] == array.itemsize)


def _mask_for(mask: Any, query: Any, key: Any) -> Any:
    """The mask with a value for each query and key; any array where there is none."""
    if mask is None:
        return query
    wanted = (*query.shape[:3], key.shape[2])
    spread = np.broadcast_to(mask, wanted)
    return spread if _has_rows(spread) else np.ascontiguousarray(spread)


def forward(output: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Fill `output`; the logarithms of the sums of exponentials."""
    sums = np.empty(query.shape[:3], query.dtype)
    kernel = attention_forward(query.dtype.name, causal, mask is not None)
    kernel(output, sums, query, key, value, _mask_for(mask, query, key), scale)
    return sums


def backward(
    grad: Any, query: Any, key: Any, value: Any, output: Any, sums: Any, mask: Any, causal: bool, scale: float
) -> tuple[Any, ...]:
    """The gradients of query, key and value."""
    found = tuple(np.zeros(each.shape, each.dtype) for each in (query, key, value))
    if not _has_rows(grad):
        grad = np.ascontiguousarray(grad)
    kernel = attention_backward(query.dtype.name, causal, mask is not None)
    sums = np.ascontiguousarray(sums)
    kernel(*found, query, key, value, output, grad, _mask_for(mask, query, key), sums, scale)
    return found
