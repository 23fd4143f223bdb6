"""Copies of large arrays into new memory, with other strides or as another type of float."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._codegen.expr import Program
from ..._codegen.pointwise import MOST_DIMENSIONS
from ..._codegen.types import SCALARS
from .pointwise import Pointwise

_NARROW = frozenset(("float32", "bfloat16", "float16"))
_WIDE = frozenset(("float32", "float64"))
_INTEGERS = frozenset(("uint8", "int8", "int16", "int32", "int64", "bool"))


def copy_into(target: Any, source: Any) -> bool:
    """Fill `target`, whose memory is new, with the elements of `source`, of the same shape; False: it was not done."""
    given, wanted = source.dtype, target.dtype
    if target.ndim > MOST_DIMENSIONS or not (given.isnative and _exact(given.name, wanted.name)):
        return False
    flat = "c" if source.flags.c_contiguous and target.flags.c_contiguous else None
    _copier(given, wanted).into((target,), (source,), flat)
    return True


def _exact(given: str, wanted: str) -> bool:
    """Whether the conversion rounds at most once, as NumPy's does."""
    if given == wanted:
        return given in SCALARS
    return {given, wanted} <= _NARROW or {given, wanted} <= _WIDE or (given in _INTEGERS and wanted == "float32")


@functools.cache
def _copier(given: np.dtype[Any], wanted: np.dtype[Any]) -> Pointwise:
    computed = "float32" if given.name in _NARROW else given.name
    steps: list[tuple[Any, ...]] = [("input", computed, 0)]
    goal = "float32" if wanted.name in _NARROW else wanted.name
    if goal != computed:
        steps.append(("cast", goal, 0))
    return Pointwise(Program(tuple(steps), (len(steps) - 1,)), [given], [wanted])
