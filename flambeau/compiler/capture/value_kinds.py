"""Kinds of Python values that checks tell apart: by value, by what they hold, or else by identity."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

import numpy as np

from ..._core.device import device, layout
from ..._core.dtype import dtype
from ..._core.size import Size

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
VALUES = (int, float, complex, str, bytes, range, slice, dtype, device, layout, np.dtype)
CONTAINERS = (list, tuple, dict, set, frozenset, OrderedDict, defaultdict, deque, Size)


def is_named_tuple(kind: type) -> bool:
    """Whether a class is a tuple whose items have names."""
    return issubclass(kind, tuple) and kind is not tuple and hasattr(kind, "_fields")
