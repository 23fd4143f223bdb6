"""Elementary functions for generated code, of scalars and vectors of float32 and float64.

Each takes a builder and values and returns a value. None calls a library: they consist of multiplications with
addition, comparisons with selection, and work on the bits. Errors are at most 2 units in the last place over the whole
domain, except where a function says otherwise, and signs of zero, infinities, NaN and denormal numbers are as C's
standard says; `docs/accuracy.md` has what was measured. The polynomials come from `tools/fit_polynomials.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..build import Value
from .division import floor_divide, fmod, remainder
from .error import erf, erfc, erfinv
from .exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from .inverse_trigonometric import arccos, arcsin, arctan, arctan2
from .logarithm import arccosh, arcsinh, arctanh, log, log1p, log2, log10
from .power import cbrt, hypot, power, rsqrt
from .sums import logaddexp, logaddexp2
from .trigonometric import cos, sin, tan

FUNCTIONS: dict[str, Callable[..., Value]] = {
    function.__name__: function
    for function in (
        *(exp, exp2, expm1, sigmoid, sinh, cosh, tanh),
        *(log, log2, log10, log1p, arcsinh, arccosh, arctanh),
        *(sin, cos, tan, arcsin, arccos, arctan, arctan2),
        *(power, rsqrt, cbrt, hypot),
        *(fmod, remainder, floor_divide),
        *(logaddexp, logaddexp2),
        *(erf, erfc, erfinv),
    )
}
"""The functions by the names of NumPy's ufuncs, or PyTorch's where NumPy has none."""

__all__ = [
    "FUNCTIONS",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor_divide",
    "fmod",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "power",
    "remainder",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "tan",
    "tanh",
]
