"""Numbers at equal distances."""

from __future__ import annotations

from typing import Any

from ...._codegen.elements.linspace import spaced
from ..runtime.dtypes import KernelsByType


def fill_spaced(out: Any, first: float, last: float) -> bool:
    """Fill a new array of float32 or float64; whether that was done."""
    kernel = _SPACED[out.dtype]
    if kernel is None:
        return False
    kernel(out, out.size, first, last)
    return True


_SPACED = KernelsByType(spaced)
"""None for half precision, which rounds every step."""
