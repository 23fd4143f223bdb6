"""Numbers at equal distances."""

from __future__ import annotations

from typing import Any

from ..._codegen.elements.spaced import spaced
from .dtypes import float_name


def fill_spaced(out: Any, first: float, last: float, step: float) -> bool:
    """Fill a new array of float32 or float64; whether that was done."""
    name = float_name(out)
    if name is None or out.itemsize == 2:  # half precision rounds every step
        return False
    spaced(name)(out, out.size, first, last, step)
    return True
