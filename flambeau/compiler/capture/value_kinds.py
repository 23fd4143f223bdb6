"""Kinds of Python values that checks tell apart: by value, by what they hold, or else by identity."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from io import TextIOWrapper
from types import (
    BuiltinFunctionType,
    CodeType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np

from ..._core.device import device, layout
from ..._core.dtype import dtype
from ..._core.generator import Generator
from ..._core.kind import Kind
from ..._core.size import Size

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
VALUES = (int, float, complex, str, bytes, range, slice, dtype, device, layout, np.dtype)
CONTAINERS = (list, tuple, dict, set, frozenset, OrderedDict, defaultdict, deque, Size)


class _Pair(NamedTuple):
    first: Any


_FieldOfTuple = type(vars(_Pair)["first"])
OPAQUE = (
    BuiltinFunctionType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType,
    MemberDescriptorType, _FieldOfTuple, functools._lru_cache_wrapper, CodeType, np.ufunc, type(np.mean), Generator,
    Kind, UnionType, GenericAlias, TextIOWrapper,
)  # fmt: skip
"""What is known by its identity, and has no state that a program reads without an op or a call that is watched."""


def is_named_tuple(kind: type) -> bool:
    """Whether a class is a tuple whose items have names."""
    return issubclass(kind, tuple) and kind is not tuple and hasattr(kind, "_fields")
