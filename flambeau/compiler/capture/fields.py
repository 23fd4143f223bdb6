"""Where Python's own objects have their attributes in memory: the code of a function, the function of a `partial`.

The places differ from one version of Python to the next, so they are looked for in samples.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_ssize_t)


def field_of(owner: Any, name: str) -> tuple[int, int] | None:
    """How far behind its address an object has an attribute, and the word that is there; None: it is not known."""
    kind = next((each for each in _SAMPLES if isinstance(owner, each)), None)
    offset = None if kind is None else _offsets(kind).get(name)
    if offset is None:
        return None
    word, value = _word(owner, offset), getattr(owner, name)
    return (offset, word) if word == id(value) or (value is None and not word) else None


def _word(owner: Any, offset: int) -> int:
    return ctypes.c_ssize_t.from_address(id(owner) + offset).value


@functools.cache
def _offsets(kind: type) -> dict[str, int]:
    """Where objects of a class have their attributes, as far as a sample of it has each in exactly one place."""
    make, names = _SAMPLES[kind]
    sample = make()
    if sys.implementation.name != "cpython":
        return {}
    places = range(2 * _WORD, kind.__basicsize__, _WORD)
    found = {name: [at for at in places if _word(sample, at) == id(getattr(sample, name))] for name in names}
    return {name: each[0] for name, each in found.items() if len(each) == 1}


@functools.cache
def items_of_set() -> int | None:
    """How far behind its address a set has the number of its items; None: it is not known."""
    items = [object() for _ in range(5)]
    sample = set(items)
    sample.remove(items[0])  # so that it had more at some time, which it may remember
    if sys.implementation.name != "cpython":
        return None
    found = [at for at in range(2 * _WORD, set.__basicsize__, _WORD) if _word(sample, at) == len(sample)]
    return found[0] if len(found) == 1 else None


def _function() -> Any:
    def sample(first: Any = 0.25, *, second: Any = 0.5) -> None: ...

    return sample


def _getters() -> property:
    return property(_function(), _function(), _function())


_SAMPLES: dict[type, tuple[Callable[[], Any], tuple[str, ...]]] = {
    FunctionType: (_function, ("__code__", "__defaults__", "__kwdefaults__")),
    functools.partial: (lambda: functools.partial(_function(), 0.25, second=0.5), ("func", "args", "keywords")),
    property: (_getters, ("fget", "fset", "fdel")),
    CellType: (lambda: CellType(_function()), ("cell_contents",)),
    staticmethod: (lambda: staticmethod(_function()), ("__func__",)),
    classmethod: (lambda: classmethod(_function()), ("__func__",)),
}
