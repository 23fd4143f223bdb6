"""Decompositions and solutions of systems, NumPy's and its library's, with as many threads as pay.

The library divides even the small steps of a decomposition among its threads, which then wait for one another thousands
of times. Where another process uses the processors too, each wait may take as long as the operating system lets that
one run: on two busy processors, the singular values of 200 x 200 numbers took 10 to 30 times as long with two threads
as with one, and everything up to 800 x 800 several times as long. On an idle machine with 16 processors, threads gain
nothing (less than a tenth) below the sizes given here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .cpu import eliminations
from .cpu.blas import one_thread

_DIVIDED = 64
"""The library itself leaves matrices below this size to one thread."""
_DECOMPOSITIONS = 600
_ELIMINATIONS = 200


def _with_threads_from(size: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of matrices, with several threads only if their smaller side is at least `size`."""

    @functools.wraps(function)
    def run(matrices: Any, *args: Any, **kwargs: Any) -> Any:
        if not _DIVIDED <= min(matrices.shape[-2:]) < size:
            return function(matrices, *args, **kwargs)
        with one_thread():
            return function(matrices, *args, **kwargs)

    return run


svd = _with_threads_from(_DECOMPOSITIONS, np.linalg.svd)
eig = _with_threads_from(_DECOMPOSITIONS, np.linalg.eig)
eigvals = _with_threads_from(_DECOMPOSITIONS, np.linalg.eigvals)
eigh = _with_threads_from(_DECOMPOSITIONS, np.linalg.eigh)
eigvalsh = _with_threads_from(_DECOMPOSITIONS, np.linalg.eigvalsh)
qr = _with_threads_from(_DECOMPOSITIONS, np.linalg.qr)
det = _with_threads_from(_DECOMPOSITIONS, np.linalg.det)
slogdet = _with_threads_from(_DECOMPOSITIONS, np.linalg.slogdet)
cholesky = _with_threads_from(_DECOMPOSITIONS, np.linalg.cholesky)
inv = _with_threads_from(_ELIMINATIONS, np.linalg.inv)
solve = _with_threads_from(_ELIMINATIONS, np.linalg.solve)
factored = _with_threads_from(_ELIMINATIONS, eliminations.factored)
triangle_solved = _with_threads_from(_ELIMINATIONS, eliminations.triangle_solved)
