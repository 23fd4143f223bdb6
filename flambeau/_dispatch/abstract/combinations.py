"""Elementwise combinations of three operands, each said once: of arrays, of one element, of abstract tensors."""

from __future__ import annotations

from typing import Any

import numpy as np


def interpolated(start: Any, end: Any, weight: Any, near: bool, out: Any = None) -> Any:
    """`weight` of the way from `start` to `end`, computed from the nearer of both, so that both are exact."""
    distance = end - start
    if near:
        way = distance * weight
        return start + way if out is None else np.add(start, way, out)
    way = distance * (1 - weight)
    return end - way if out is None else np.subtract(end, way, out)


def scaled_product(one: Any, two: Any, factor: Any) -> Any:
    """What `addcmul` adds."""
    return one * factor * two


def scaled_quotient(one: Any, two: Any, factor: Any) -> Any:
    """What `addcdiv` adds."""
    return one * factor / two
