"""The threads of the linear algebra library that NumPy brings along."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

_NAMES = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@functools.cache
def _setter() -> Callable[[int], object] | None:
    """The library's function that sets the number of its threads; None: it is another library, or has no such thing."""
    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs", home / ".libs"):
        for path in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for name in _NAMES:
                if hasattr(library, name):
                    return getattr(library, name)  # type: ignore[no-any-return]
    return None


def limit_threads(number: int) -> bool:
    """Let matrix products use at most `number` threads; False: there is no way to say so."""
    setter = _setter()
    if setter is not None:
        setter(number)
    return setter is not None
