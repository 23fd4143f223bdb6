"""The operators of `torch.ops.prims`: PyTorch's smallest ones, of operands that have one dtype and one shape."""

from __future__ import annotations

from typing import Any

from .._dispatch.public.overloads import OpOverloadPacket

_SAME = frozenset((
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "bitwise_not", "ceil", "conj_physical",
    "digamma", "erf", "erfc", "exp", "expm1", "exp2", "floor", "imag", "isfinite", "lgamma", "log", "log1p", "log2",
    "log10", "neg", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "fmax", "fmin", "fmod", "frexp", "gcd", "ge",
    "gt", "hypot", "igamma", "igammac", "le", "lt", "maximum", "minimum", "mul", "ne", "nextafter", "pow",
    "remainder", "rsqrt", "sub", "as_strided", "conj", "as_strided_scatter", "reshape", "where", "clone", "amax",
    "amin", "sum", "prod", "empty_strided", "empty_permuted", "scalar_tensor", "cat",
))  # fmt: skip
_OTHERS = {
    "bessel_i0": "i0", "bessel_i0e": "special.i0e", "bessel_i1": "special.i1", "bessel_i1e": "special.i1e",
    "bessel_j0": "special.bessel_j0", "bessel_j1": "special.bessel_j1", "erf_inv": "erfinv", "erfcx": "special.erfcx",
    "ndtri": "special.ndtri", "spherical_bessel_j0": "special.spherical_bessel_j0", "zeta": "special.zeta",
    "shift_left": "bitwise_left_shift", "shift_right_arithmetic": "bitwise_right_shift", "rev": "flip",
    "transpose": "permute",
}  # fmt: skip
"""The operators that the package has under other names."""


def _body(name: str) -> Any:
    import flambeau

    found: Any = flambeau
    for part in _OTHERS.get(name, name).split("."):
        found = getattr(found, part)
    return found


def __getattr__(name: str) -> Any:
    if name not in _SAME and name not in _OTHERS:
        raise AttributeError(f"'_OpNamespace' 'prims' object has no attribute '{name}'")
    packet = globals()[name] = OpOverloadPacket("prims", name, _body(name))
    return packet


def __dir__() -> list[str]:
    return sorted((*_SAME, *_OTHERS))
