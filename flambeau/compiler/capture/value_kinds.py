"""Kinds of Python values that checks tell apart: by value, by what they hold, or else by identity."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from types import MethodType
from typing import Any

import numpy as np

from ..._core.device import device, layout
from ..._core.dtype import dtype
from ..._core.size import Size
from ..._core.tensor import Tensor
from ..._dispatch.public.namespaces import is_unbound

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
VALUES = (int, float, complex, str, bytes, range, slice, dtype, device, layout, np.dtype)
CONTAINERS = (list, tuple, dict, set, frozenset, OrderedDict, defaultdict, deque, Size)


def is_named_tuple(kind: type) -> bool:
    """Whether a class is a tuple whose items have names."""
    return issubclass(kind, tuple) and kind is not tuple and hasattr(kind, "_fields")


def mark(value: Any) -> Any:
    """What tells a value from others that might take its place."""
    kind = type(value)
    if kind in VALUES:
        return kind, repr(value)
    if kind in CONTAINERS or is_named_tuple(kind):
        return kind, [repr(each) if type(each) in VALUES else id(each) for each in value]
    if issubclass(kind, Tensor):
        history = id(value._grad_fn) if value._view is None else None  # a view's is made anew when it is asked for
        return id(value), id(value._array), value.requires_grad, history, value._array.shape, value._array.strides
    if kind is MethodType and not is_unbound(value):
        return kind
    return id(value)
