"""Decompositions and solutions of systems, NumPy's and its library's, in the precision of the matrices.

NumPy's functions compute float32 in float64, which takes twice as long. The loops under them, which it calls by
signature, have one for each dtype: these are called here where they are known, the functions elsewhere.

All of them use as many threads as pay. The library divides even the small steps of a decomposition among its threads,
which then wait for one another thousands of times. Where another process uses the processors too, each wait may take as
long as the operating system lets that one run: on two busy processors, the singular values of 200 x 200 numbers took 10
to 30 times as long with two threads as with one, inverses of 200 x 200 to 500 x 500 numbers 8 to 70 times, and
everything up to 800 x 800 several times. On an idle machine with 16 processors, threads gain nothing (less than a
tenth) in decompositions below the size given here, and in eliminations below 200: what they would gain in those from
200 on is less than what a neighbour may cost.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core.process.reproducibility import REPRODUCIBILITY
from . import portable_lapack
from .cpu.linalg import lapack as routines
from .cpu.linalg.blas import one_thread
from .portable import refuse_library

_DIVIDED = 64
"""The library itself leaves matrices below this size to one thread."""
_SHARED = 600
"""Smaller ones are left to one thread here."""

_ENDLESS = "F" if sys.platform == "emscripten" else ""
"""Dtypes whose loops are not called: in the browser, that for singular values of complex64 never returns."""

_IN_WORDS = {"eig": "a decomposition into eigenvectors", "eigvals": "eigenvalues"}
"""What functions compute, for errors; the others have the field's names."""


def _threaded(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of matrices, with several threads only where they pay."""

    name = function.__name__.lstrip("_")

    @functools.wraps(function)
    def run(matrices: Any, *args: Any, **kwargs: Any) -> Any:
        if REPRODUCIBILITY.machine:
            own = portable_lapack.FUNCTIONS.get(name)
            if own is not None and matrices.dtype.kind != "c":
                return own(matrices, *args, **kwargs)
            refuse_library(_IN_WORDS.get(name, name))
        if not _DIVIDED <= min(matrices.shape[-2:]) < _SHARED:
            return function(matrices, *args, **kwargs)
        with one_thread():
            return function(matrices, *args, **kwargs)

    return run


def _failed(kind: str, flag: int) -> NoReturn:
    raise np.linalg.LinAlgError("a matrix is singular, not positive-definite, or without a result that converges")


@functools.cache
def _loop(name: str) -> tuple[Any, dict[str, str]]:
    """NumPy's loop of this name, and its signatures by the dtype of the matrices."""
    loop = getattr(getattr(np.linalg, "_umath_linalg", None), name, None)
    return loop, {each[0]: each for each in getattr(loop, "types", ()) if each[0] not in _ENDLESS}


def _by_loop(name: str, matrices: Any, *others: Any) -> Any:
    """What NumPy's loop of this name makes of matrices; None: it has none for them."""
    loop, signatures = _loop(name)
    signature = signatures.get(matrices.dtype.char) if type(matrices) is np.ndarray else None
    if signature is None:
        return None
    with np.errstate(invalid="call", over="ignore", divide="ignore", under="ignore", call=_failed):
        return loop(matrices, *others, signature=signature)


def _preferring_loop(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(matrices: Any, *others: Any) -> Any:
        found = _by_loop(name, matrices, *others)
        return function(matrices, *others) if found is None else found

    return run


def _svdvals(matrices: Any) -> Any:
    found = _by_loop("svd", matrices)
    return np.linalg.svd(matrices, compute_uv=False) if found is None else found


def _eigh(matrices: Any, triangle: Any = "L") -> Any:
    found = _by_loop("eigh_lo" if triangle == "L" else "eigh_up", matrices)
    return np.linalg.eigh(matrices, triangle) if found is None else found


def _eigvalsh(matrices: Any, triangle: Any = "L") -> Any:
    found = _by_loop("eigvalsh_lo" if triangle == "L" else "eigvalsh_up", matrices)
    return np.linalg.eigvalsh(matrices, triangle) if found is None else found


def _qr(matrices: Any, mode: Any) -> Any:
    found = routines.qr(matrices, mode) if type(matrices) is np.ndarray else None
    return np.linalg.qr(matrices, mode) if found is None else found


def are_factored(matrices: Any) -> bool:
    """Whether `factored` and `solved_by_factors` do such matrices."""
    return not REPRODUCIBILITY.machine and routines.are_factored(matrices)


svd = _threaded(np.linalg.svd)  # where singular values are equal, its vectors depend on the precision: as with `eig`
svdvals = _threaded(_svdvals)
eig = _threaded(np.linalg.eig)  # the order of its values depends on the precision: one for all devices
eigvals = _threaded(np.linalg.eigvals)
eigh = _threaded(_eigh)
eigvalsh = _threaded(_eigvalsh)
qr = _threaded(_qr)
det = _threaded(np.linalg.det)  # its loop for float32 takes the exponential of a sum of logs
slogdet = _threaded(np.linalg.slogdet)
cholesky = _threaded(_preferring_loop("cholesky_lo", np.linalg.cholesky))
inv = _threaded(_preferring_loop("inv", np.linalg.inv))
solve = _threaded(_preferring_loop("solve", np.linalg.solve))
factored = _threaded(routines.factored)
solved_by_factors = _threaded(routines.solved_by_factors)
inverted = _threaded(routines.inverted)
positive_factored = _threaded(routines.positive_factored)
triangle_solved = _threaded(routines.triangle_solved)
symmetric_factored = _threaded(routines.symmetric_factored)
orthonormal = _threaded(routines.orthonormal)
least_squares = _threaded(routines.least_squares)
