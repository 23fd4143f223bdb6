"""The operators, one file for each family. Importing this package registers them all."""

from __future__ import annotations

from . import (
    binary,
    complex_view,
    copy,
    create,
    extremes,
    join,
    norm,
    random,
    rearrange,
    reduce,
    scan,
    shape,
    sort,
    split,
    unary,
    view,
    view_copy,
)

__all__ = [
    "binary",
    "complex_view",
    "copy",
    "create",
    "extremes",
    "join",
    "norm",
    "random",
    "rearrange",
    "reduce",
    "scan",
    "shape",
    "sort",
    "split",
    "unary",
    "view",
    "view_copy",
]
