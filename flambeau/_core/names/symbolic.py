"""Sizes as symbols: the functions that PyTorch's programs apply to sizes, which are plain numbers here."""

from __future__ import annotations

import math
from typing import Any

from .absent import absent_class

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float",
    "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip

_REASON = "sizes are numbers here: symbolic shapes belong to the compiler, which is not built yet"
SymInt = absent_class("torch.SymInt", _REASON)
SymFloat = absent_class("torch.SymFloat", _REASON)
SymBool = absent_class("torch.SymBool", _REASON)


def sym_int(a: Any) -> int:
    """A size as an integer, rounded towards zero."""
    number: int = math.trunc(a)
    return number


def sym_float(a: Any) -> float:
    """A size as a float."""
    number: float = a.__float__()
    return number


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two sizes; a float if either is one."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two sizes; a float if either is one."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> bool:
    """The opposite of a condition on sizes."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """One of two values by a condition on sizes."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: t is {type(t)}, f is {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of sizes, which come in one list or one by one."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_sqrt(a: Any) -> float:
    """The square root of a size."""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> Any:
    """A size as it is."""
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Refuse a size that is out of a range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """The same for what is to become a size."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)
