"""Where a lowering takes memory from and runs its kernels.

Most run at once, on new arrays of NumPy's: `DIRECT`. While a program is planned, another workspace writes down what
they would do. A lowering that takes one uses it for everything that it makes, and looks at no element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._core.geometry.layout import empty_array


class Workspace(NamedTuple):
    """What makes arrays and runs kernels."""

    empty: Callable[..., Any]
    """(shape, dtype)"""
    zeros: Callable[..., Any]
    """(shape, dtype)"""
    arranged: Callable[..., Any]
    """(shape, strides in elements, dtype)"""
    run: Callable[..., Any]
    """(kernel, *arguments): what the kernel returns, the array that it is given first."""
    refuses: Callable[[Any], bool]
    """(flags): whether a kernel has found something that it does not do, and has set the last of its flags."""
    changes: Callable[..., None]
    """(*arrays): kernels that run later write these, which were there before."""
    holds_while: Callable[[int, int], None]
    """(address of a C function without arguments, number): what runs later is right as long as that returns this."""


def _run(kernel: Any, *args: Any) -> Any:
    return kernel(*args)  # not by `operator.call`: what it calls is seen by no profiler


def _refuses(flags: Any) -> bool:
    return bool(flags[-1])


def _needs_no_note(*facts: Any) -> None:
    """What is done at once is about the arrays and the settings of this moment."""


DIRECT = Workspace(np.empty, np.zeros, empty_array, _run, _refuses, _needs_no_note, _needs_no_note)
