"""Rows of device arrays added up by their numbers, in the order of their positions. None or False: no kernel fits."""

from __future__ import annotations

import math
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.losses import THREADS as ORDER_THREADS
from ...._codegen.cuda.losses import order_source
from ...._codegen.cuda.row_sums import THREADS, add_slices_source
from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, dense, empty
from ..arrays.assignment import assign
from ..arrays.host import by_library_or_host
from ..runtime.driver import driver

_MOST_COUNTED = 1 << 16
"""So many positions are sorted by counting, for each of them what comes before it: in one launch."""
_ORDER, _SLICES = Struct("=qQQ").pack, Struct("=qqqqqQQQQ").pack


@cache
def _order_kernel(index: str) -> Any:
    return driver().compile(order_source(index))


@cache
def _slices_kernel(name: str) -> Any:
    return driver().compile(add_slices_source(name))


def order_of(rows: DeviceArray) -> DeviceArray:
    """The positions of a vector without gaps sorted by what is there, those of equal numbers in their order."""
    count = rows.form.size
    if count > _MOST_COUNTED:
        found: DeviceArray = by_library_or_host(np.argsort, (rows,), {"kind": "stable"})
        return found
    order = empty((count,), np.dtype(np.int64))
    if count:
        fields = _ORDER(count, rows.pointer, order.pointer)
        _order_kernel(name_of(rows.dtype))(count, driver().block_threads(ORDER_THREADS), fields)
    return order


def add_in_order(target: Any, key: Any, values: Any) -> bool:
    """`np.add.at` for an array of one dimension and positions as one array: what meets is added in order."""
    places = key[0] if type(key) is tuple and len(key) == 1 else key
    if not (type(target) is type(places) is DeviceArray) or target.form.ndim != 1 or places.form.dtype.kind not in "iu":
        return False
    if type(values) is not DeviceArray or values.form.shape != places.form.shape or values.dtype != target.dtype:
        return False
    return add_slices(target, 0, places.reshape(-1), values.reshape(-1))


def add_slices(target: DeviceArray, dim: int, positions: DeviceArray, values: Any) -> bool:
    """Add the slices of `values` to those of `target` at `positions` along `dim`; who calls it has checked these."""
    name = name_of(target.dtype)
    if name not in TYPES or values.dtype != target.dtype or positions.form.dtype.kind not in "iu" or not target.ndim:
        return False
    rows = dense(positions.astype(np.int64, copy=False)).reshape(-1)
    shape, count = target.form.shape, rows.form.size
    width = target.form.size // shape[dim] if shape[dim] else 0
    if not (count and width):
        return True
    if values.form.shape != (wanted := (*shape[:dim], count, *shape[dim + 1 :])):
        values = np.broadcast_to(values, wanted)
    into, values, order = dense(target), dense(values), order_of(rows)
    blocks = -(-width // THREADS)
    fields = _SLICES(
        count, width, math.prod(shape[dim + 1 :]), shape[dim], blocks, values.pointer, rows.pointer, order.pointer,
        into.pointer,
    )  # fmt: skip
    _slices_kernel(name)(blocks * count, THREADS, fields)
    if into is not target:
        assign(target, into)
    return True
