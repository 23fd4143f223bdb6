"""How gamma numbers move with their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.random.slopes import gamma_integrals
from ...._core.arrays.quick import name_of

Array = Any


def gamma_integral(
    a: Array, x: Array, distance: Array, side: Array, width: Array, points: Array, weights: Array
) -> Array:
    """The integrals for flat arrays of float64 or float32."""
    return gamma_integrals(name_of(a.dtype))(
        np.empty_like(a), a, x, distance, side, width, points, weights, a.size, points.size
    )
