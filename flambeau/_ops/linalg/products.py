"""Products of arrays, by whichever kernel is the quickest for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends import arrays

_LEAST, _MOST = 64**3, 512**3
"""Between so many multiplications, a generated kernel may do it: see `_backends/cpu/matmul.py`."""


def array_dot(left: Any, right: Any) -> Any:
    """`np.dot`."""
    if left.ndim == 2 == right.ndim and _LEAST < left.size * right.shape[1] <= _MOST:
        done = arrays.product(left, right)
        if done is not None:
            return done
    return left.dot(right) if type(left) is np.ndarray is type(right) else np.dot(left, right)
