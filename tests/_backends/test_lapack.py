"""Decompositions use as many threads as pay: one where waiting for others would cost more than it gains."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends import lapack
from flambeau._backends.cpu.linalg import blas

pytestmark = pytest.mark.skipif(blas.used_threads() is None, reason="NumPy's library does not say")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = blas.used_threads()
    assert before is not None
    blas.limit_threads(2)
    yield
    blas.limit_threads(before)


@pytest.mark.parametrize(
    ("shape", "expected"), [((8, 8), 2), ((200, 200), 1), ((3, 100, 2000), 1), ((0, 5), 2), ((600, 600), 2)]
)
def test_threads_by_size(shape: tuple[int, ...], expected: int) -> None:
    seen = lapack._threaded(lambda matrix: blas.used_threads())(np.zeros(shape))
    assert (seen, blas.used_threads()) == (expected, 2)


def test_errors_give_the_threads_back() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        lapack.cholesky(-np.eye(100))
    assert blas.used_threads() == 2


def test_several_callers_at_once() -> None:
    with blas.one_thread():
        with blas.one_thread():
            assert blas.used_threads() == 1
        assert blas.used_threads() == 1
        flambeau.set_num_threads(flambeau.get_num_threads())  # takes effect when the last caller is done
        assert blas.used_threads() == 1
    assert blas.used_threads() == flambeau.get_num_threads()


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh", "qr", "inv", "ldl_factor"])
def test_ops_go_that_way(name: str) -> None:
    matrices = flambeau.randn(20, 200, 200)
    function: Any = getattr(flambeau.linalg, name)
    seen = set()
    looking, done = threading.Event(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(blas.used_threads())
            looking.set()

    thread = threading.Thread(target=look)
    thread.start()
    looking.wait()
    for _ in range(100):  # a call may end between two looks
        function(matrices)
        if 1 in seen:
            break
    done.set()
    thread.join()
    assert 1 in seen
    assert blas.used_threads() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's, of forking with threads
def test_a_forked_process_has_all_threads() -> None:
    with blas.one_thread():
        child = os.fork()
        if not child:
            os._exit(blas.used_threads() or 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def _all(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "eigh", "eigvalsh", "svdvals"])
def test_results_without_the_loops(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, 3, 6, 6))
    noise = (parts[0] + 1j * parts[1] if dtype == "complex64" else parts[0]).astype(dtype)
    matrices = noise @ noise.conj().swapaxes(-1, -2) + np.diag(np.arange(6)).astype(dtype)
    others = {"solve": (noise,), "eigh": ("U",), "eigvalsh": ("U",)}.get(name, ())
    function = getattr(lapack, name)
    quick = _all(function(matrices, *others))
    monkeypatch.setattr(lapack, "_by_loop", lambda *_: None)
    for ours, theirs in zip(quick, _all(function(matrices, *others)), strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype.char.lower() == theirs.dtype.char.lower() == "f"
        # vectors are unique up to a phase
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-2, atol=1e-3)
