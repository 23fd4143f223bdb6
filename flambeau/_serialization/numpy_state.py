"""NumPy arrays, scalars and dtypes from a pickle, without NumPy's own unpickling of unchecked state."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np

from .limits import Budget

_PLAIN_KINDS = "biufcSU?"
_MOST_BYTES_OF_ITEM = 1 << 20


def _refuse(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"a saved NumPy {what}: the file is corrupt, or has arrays of objects or records")


def make_dtype(budget: Budget, name: Any, align: Any = False, copy: Any = True) -> np.dtype[Any]:
    """A dtype of plain numbers or strings."""
    if type(name) is not str or len(name) > 12 or not name.isalnum():
        raise _refuse("dtype has no plain name")
    made = np.dtype(name)
    if made.kind not in _PLAIN_KINDS or made.itemsize > _MOST_BYTES_OF_ITEM:
        raise _refuse(f"dtype {name!r} is not one of numbers or strings")
    return np.dtype(made, copy=True)


def build_dtype(target: np.dtype[Any], state: Any) -> None:
    """Give a dtype its byte order."""
    if type(state) is not tuple or len(state) not in (8, 9) or state[1] not in ("<", ">", "|", "=", b"<", b">", b"|"):
        raise _refuse("dtype has no plain state")
    size, alignment = (target.itemsize, target.alignment) if target.kind in "SU" else (-1, -1)
    order = state[1].decode() if type(state[1]) is bytes else state[1]
    if state[2:5] != (None, None, None) or state[5] != size or state[6] not in (alignment, -1):
        raise _refuse("dtype has no plain state")
    # NumPy's stubs leave it out.
    target.__setstate__((3, order, None, None, None, size, alignment, 8 if target.kind == "U" else 0))  # type: ignore[attr-defined]


def _content(value: Any, array_type: Any, count: int, budget: Budget) -> bytes:
    if not isinstance(array_type, np.dtype) or array_type.kind not in _PLAIN_KINDS:
        raise _refuse("array has no plain dtype")
    if type(value) is str:  # Python 2 had no bytes
        value = value.encode("latin1")
    if type(value) not in (bytes, bytearray) or len(value) != count * array_type.itemsize:
        raise _refuse("array does not have the bytes that its shape and dtype need")
    budget.spend(len(value))
    return bytes(value)


def _shape(value: Any) -> tuple[int, ...]:
    if type(value) is not tuple or len(value) > 64 or not all(type(size) is int and size >= 0 for size in value):
        raise _refuse("array has no plain shape")
    return value


def make_scalar(budget: Budget, array_type: Any, content: Any = b"") -> Any:
    """A NumPy scalar."""
    return np.frombuffer(_content(content, array_type, 1, budget), array_type)[0]


def make_array(budget: Budget, cls: Any, shape: Any, kind: Any) -> Any:
    """The empty array that a later BUILD fills."""
    if cls is not np.ndarray:
        raise _refuse("array is of another class than ndarray")
    return np.empty(0, np.int8)


def array_from_buffer(budget: Budget, content: Any, array_type: Any, shape: Any, order: Any = "C") -> Any:
    """An array from its bytes, as protocol 5 writes it."""
    sizes = _shape(shape)
    raw = _content(content, array_type, math.prod(sizes), budget)
    return np.frombuffer(raw, array_type).reshape(sizes, order="F" if order == "F" else "C").copy(order="K")


def build_array(target: Any, state: Any, budget: Budget) -> None:
    """Fill the array that `make_array` made."""
    if type(state) is not tuple or len(state) not in (4, 5):
        raise _refuse("array has no plain state")
    shape, array_type, fortran, content = state[-4:]
    sizes = _shape(shape)
    raw = _content(content, array_type, math.prod(sizes), budget)
    target.__setstate__((1, sizes, array_type, bool(fortran), raw))
