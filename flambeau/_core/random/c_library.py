"""Functions of float64 arrays, bit for bit those of the C library, from which PyTorch makes random numbers.

NumPy's are the C library's on most machines, but on some (x86-64 with AVX-512) it has vector code of its own, whose
results differ in the last place now and then. Whether that is so is tried out at a function's first call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import FUNCTIONS, LARGE
from ..process.reproducibility import REPRODUCIBILITY

if TYPE_CHECKING:
    import numpy.typing as npt

    Float64s = npt.NDArray[np.float64]

_TRIED = 1000
"""So many numbers are tried: of those seen, the vector code with the fewest differences has some in a hundred."""


class CFunction:
    """A function of the C library for whole arrays; NumPy's and `math`'s have its name. `low` to `high` is tried."""

    def __init__(self, ufunc: Callable[..., Any], low: float, high: float) -> None:
        self.ufunc = ufunc
        self.name: str = ufunc.__name__
        self._range = low, high
        self._numpy_agrees: bool | None = None

    def __call__(self, x: Float64s) -> Float64s:
        """The function of each element."""
        if REPRODUCIBILITY.function is not None:
            own: Float64s = REPRODUCIBILITY.function(self.name, x)
            return own
        with np.errstate(all="ignore"):
            if self.numpy_agrees:
                result: Float64s = self.ufunc(x)
                return result
            if x.size >= LARGE and (kernels := FUNCTIONS[np.ndarray]["random"]) is not None:
                found: Float64s = kernels.c_function(self.name, x)
                return found
            return self.one_by_one(x)

    @property
    def numpy_agrees(self) -> bool:
        """Whether NumPy gives the C library's bits on this machine."""
        if self._numpy_agrees is None:
            tried = np.linspace(*self._range, _TRIED)
            self._numpy_agrees = np.array_equal(self.ufunc(tried), self.one_by_one(tried))
        return self._numpy_agrees

    def one_by_one(self, x: Float64s) -> Float64s:
        """The function of each element by Python's `math`, except where that refuses: at infinite results."""
        result: Float64s = self.ufunc(x)
        usual = np.isfinite(result)
        result[usual] = list(map(getattr(math, self.name), x[usual].tolist()))
        return result


exp = CFunction(np.exp, -9.0, 9.0)
log = CFunction(np.log, 0.001, 0.999)
log1p = CFunction(np.log1p, -0.999, -0.001)
sin = CFunction(np.sin, 0.001, 6.283)
cos = CFunction(np.cos, 0.001, 6.283)
tan = CFunction(np.tan, -1.57, 1.57)
