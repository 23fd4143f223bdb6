"""Values combined into given positions of a device array: the largest, the smallest, or the product of what meets."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.combine import KINDS, SIZES, THREADS, combine_source
from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, dense
from ..runtime.driver import driver

_FIELDS = Struct("=qqQQQ").pack


def combine_at(kind: str, target: Any, key: Any, values: Any) -> bool:
    """`ufunc.at` for an array of one dimension without gaps and positions as one array; False: no kernel does it."""
    places = key[0] if type(key) is tuple and len(key) == 1 else key
    if kind not in KINDS or not (type(target) is type(places) is type(values) is DeviceArray):
        return False
    form = target.form
    if form.ndim != 1 or not form.flags.c_contiguous or form.itemsize not in SIZES or form.dtype.kind == "c":
        return False
    if name_of(form.dtype) not in TYPES or places.form.dtype.kind not in "iu" or places.form.shape != values.form.shape:
        return False
    places, values = (dense(places.astype(np.int64, copy=False)), dense(values.astype(form.dtype, copy=False)))
    count = places.form.size
    if count:
        fields = _FIELDS(count, form.size, places.pointer, values.pointer, target.pointer)
        _kernel(kind, name_of(form.dtype))(-(-count // THREADS), THREADS, fields)
    return True


@cache
def _kernel(kind: str, name: str) -> Any:
    return driver().compile(combine_source(kind, name))
