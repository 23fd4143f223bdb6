"""A plugin for pytest, `-p tests.support.bounded_arrays_plugin`: no array reaches beyond its memory.

NumPy checks the arrays that it makes, but for those of `as_strided`: these are checked here against the memory that
they are windows on. Arrays without data are `AbstractArray`s; the summary counts how often one was asked for elements.
"""

from __future__ import annotations

import mmap
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from flambeau._core import storage
from flambeau._core.arrays import abstract, narrow
from flambeau.compiler.program.reads import bounds

_REFUSED: Counter[str] = Counter()
"""Reads of elements that are not there, by what was asked for."""


def _memory_of(array: Any) -> tuple[int, int]:
    """The addresses between which the memory is that an array is a window on."""
    found = array
    while isinstance(getattr(found, "base", None), np.ndarray):
        found = found.base
    if isinstance(found.base, mmap.mmap):
        found = np.frombuffer(found.base, np.uint8)
    return bounds(found)


def _bounded(x: Any, shape: Any = None, strides: Any = None, **options: Any) -> Any:
    made = as_strided(x, shape, strides, **options)
    if made.size:
        (low, high), (first, end) = bounds(made), _memory_of(x)
        assert first <= low <= high <= end, f"an array of shape {made.shape} and strides {made.strides} has no memory"
    return made


def _counting(self: Any, *args: Any) -> None:
    NotImplementedError.__init__(self, *args)
    _REFUSED[str(args[0]) if args else ""] += 1


def pytest_configure(config: pytest.Config) -> None:
    """Check from the beginning."""
    vars(narrow)["as_strided"] = vars(storage)["as_strided"] = _bounded
    setattr(abstract.NeedsData, "__init__", _counting)  # noqa: B010 (a method of a class, which has none of its own)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say who asked for elements."""
    terminalreporter.write_line(f"{_REFUSED.total()} reads of arrays without data were refused: {dict(_REFUSED)}")
