"""Running sums and products of large arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.scan import scan_columns, scan_rows
from .dtypes import float_name


def running(kind: str, array: Any, dim: int, fade: Any = None) -> Any:
    """`array` summed up ("add", "multiply", "logaddexp") along `dim`; None: NumPy has to do it.

    Of the kind "fading", what was summed up so far is multiplied by `fade` at each step.
    """
    name = float_name(array)
    if name is None:
        return None
    array = np.ascontiguousarray(array)
    fade = array if fade is None else np.ascontiguousarray(fade)
    outer, length, inner = math.prod(array.shape[:dim]), array.shape[dim], math.prod(array.shape[dim + 1 :])
    out = np.empty(array.shape, array.dtype)
    if inner == 1:
        return scan_rows(kind, name)(out, array, fade, outer, length)
    return scan_columns(kind, name)(out, array, fade, outer, length, inner)
