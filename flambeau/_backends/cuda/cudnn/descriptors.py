"""cuDNN's own interface by ctypes: descriptors, which are made, told what they describe, and closed.

Its front end for Python is more convenient, and takes longer to start a plan than the GPU takes for a small one: what
is started hundreds of times a step is planned and started here.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from ctypes import byref, c_bool, c_char, c_double, c_float, c_int, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from ..runtime.synchronization import HERE

HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, ADDRESS, MODE, HEURISTIC = range(9)
NOTE, DESCRIPTOR, INT32, CHARACTER = 11, 15, 23, 24
"""What the library calls the types of attributes."""
_IN_C = {
    HANDLE: c_void_p, DATA_TYPE: c_int, BOOLEAN: c_bool, INT64: c_int64, FLOAT: c_float, DOUBLE: c_double,
    ADDRESS: c_void_p, MODE: c_int, HEURISTIC: c_int, NOTE: c_int, DESCRIPTOR: c_void_p, INT32: c_int32,
    CHARACTER: c_char,
}  # fmt: skip

Attribute = tuple[int, int, Sequence[Any]]
"""The number of an attribute, its type, and its values."""


class Refused(Exception):
    """cuDNN does not do it."""


def check(status: int) -> None:
    """Raise what a call of the library says by its number."""
    if status:
        raise Refused(f"cuDNN: status {status}")


@cache
def library() -> Any:
    """The library; None: it is not there."""
    names = ["libcudnn.so.9"]
    found = importlib.util.find_spec("nvidia.cudnn") if importlib.util.find_spec("nvidia") is not None else None
    for place in [] if found is None else found.submodule_search_locations or []:
        names[:0] = [str(each) for each in sorted((Path(place) / "lib").glob("libcudnn.so.*"))]
    for name in names:
        try:
            loaded = ctypes.CDLL(name)
        except OSError:
            continue
        loaded.cudnnBackendExecute.argtypes = [c_void_p] * 3
        loaded.cudnnBackendSetAttribute.argtypes = [c_void_p, c_int, c_int, c_int64, c_void_p]
        loaded.cudnnBackendGetAttribute.argtypes = [c_void_p, c_int, c_int, c_int64, c_void_p, c_void_p]
        for function in ("Finalize", "DestroyDescriptor"):
            getattr(loaded, f"cudnnBackend{function}").argtypes = [c_void_p]
        return loaded
    return None


@cache
def version() -> int:
    """The version of cuDNN, as one number."""
    found: int = library().cudnnGetVersion()
    return found


_handles: dict[tuple[int, int], int] = {}


def handle(stream: int) -> int:
    """A handle for each queue of a device: to tell a handle about another queue costs more than a launch."""
    found = _handles.get((HERE.ordinal, stream))
    if found is None:
        made = c_void_p()
        check(library().cudnnCreate(byref(made)))
        check(library().cudnnSetStream(made, c_void_p(stream)))
        found = _handles[HERE.ordinal, stream] = made.value or 0
    return found


def opened(kind: int, attributes: Sequence[Attribute] = ()) -> int:
    """The address of a new descriptor, which can be told more."""
    made = c_void_p()
    check(library().cudnnBackendCreateDescriptor(c_int(kind), byref(made)))
    descriptor = made.value or 0
    for name, of_type, values in attributes:
        array = (_IN_C[of_type] * len(values))(*values)
        check(library().cudnnBackendSetAttribute(descriptor, name, of_type, len(values), ctypes.addressof(array)))
    return descriptor


def closed(kind: int, attributes: Sequence[Attribute]) -> int:
    """The address of a new descriptor that is complete. It refuses what the library does not do."""
    descriptor = opened(kind, attributes)
    status = library().cudnnBackendFinalize(descriptor)
    if status:
        forget(descriptor)
    check(status)
    return descriptor


def read(descriptor: int, name: int, of_type: int, most: int = 1) -> list[Any]:
    """The values of an attribute, at most so many."""
    array, count = (_IN_C[of_type] * most)(), c_int64()
    given = descriptor, name, of_type, most, ctypes.addressof(count), ctypes.addressof(array)
    check(library().cudnnBackendGetAttribute(*given))
    return list(array[: count.value])


def read_text(descriptor: int, name: int) -> bytes:
    """An attribute of as many characters as it has."""
    count = c_int64()
    check(library().cudnnBackendGetAttribute(descriptor, name, CHARACTER, 0, ctypes.addressof(count), None))
    return bytes(read(descriptor, name, CHARACTER, count.value))


def read_descriptors(descriptor: int, name: int, kind: int, most: int) -> list[int]:
    """Descriptors that an attribute consists of: they are made first, and the library fills them."""
    made = [opened(kind) for _ in range(most)]
    array, count = (c_void_p * most)(*made), c_int64()
    given = descriptor, name, DESCRIPTOR, most, ctypes.addressof(count), ctypes.addressof(array)
    status = library().cudnnBackendGetAttribute(*given)
    found = 0 if status else min(count.value, most)
    for each in made[found:]:
        forget(each)
    check(status)
    return made[:found]


def forget(descriptor: int) -> None:
    """Nobody needs a descriptor any more."""
    library().cudnnBackendDestroyDescriptor(descriptor)
