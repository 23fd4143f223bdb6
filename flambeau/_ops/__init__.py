"""The operators, one file for each family. Importing this package registers them all."""

from __future__ import annotations

from . import (
    binary,
    copy,
    create,
    random,
    reduce,
    unary,
    view,
)

__all__ = ["binary", "copy", "create", "random", "reduce", "unary", "view"]
