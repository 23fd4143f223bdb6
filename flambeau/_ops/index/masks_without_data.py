"""Masks of the meta device: which positions they select nobody knows."""

from __future__ import annotations

from typing import Any

from ..._core.dtype import bool_, int64, uint8
from ..._core.tensor import Tensor


def is_mask_without_data(item: Any) -> bool:
    """Whether part of an index is a mask without elements."""
    return isinstance(item, Tensor) and item._kind.dataless and item._kind.dtype in (bool_, uint8)


def with_positions(index: Any, values: Tensor) -> Any:
    """An index with positions in place of masks without data: as many as there are values to write."""
    items = index if type(index) in (tuple, list) else (index,)
    if not any(map(is_mask_without_data, items)):
        return index
    count = values._array.shape[0] if values._array.ndim else 1
    found: list[Any] = []
    for each in items:
        is_mask = is_mask_without_data(each)
        found += [each.new_empty(count, dtype=int64)] * each._array.ndim if is_mask else [each]
    return tuple(found)
