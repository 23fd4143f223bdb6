"""The thread pool: every share runs once, nested and concurrent use, forked children, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau._backends.cpu.onednn import library
from flambeau._codegen.arrays import Arguments
from flambeau._codegen.build import Builder
from flambeau._codegen.kernel import kernel
from flambeau._codegen.machine import threads
from flambeau._codegen.types import SCALARS

ROOT = Path(__file__).parents[2]


@kernel
def count_visits(b: Builder, arguments: Arguments, nested: bool) -> None:
    """(visits, grain): adds 1 to each element; `nested` runs a second parallel loop inside of each share."""
    scalar = SCALARS["int64"]
    visits, grain = arguments.array(0), arguments.integer(1)
    with b.parallel(visits.size(0), grain, visits.data, unlock=True) as (c, begin, end, (place,)):
        if not nested:
            with c.loop(begin, end) as index:
                c.store(place, scalar, index, c.load(place, scalar, index) + 1)
        else:
            share = c.parallel(end - begin, 1, c.at(place, scalar, begin))
            with share as (inner, first, last, (start,)), inner.loop(first, last) as index:
                inner.store(start, scalar, index, inner.load(start, scalar, index) + 1)


@kernel
def note_shares(b: Builder, arguments: Arguments) -> None:
    """(ends, grain): the end of each share where it begins."""
    ends, grain = arguments.array(0), arguments.integer(1)
    with b.parallel(ends.size(0), grain, ends.data) as (c, begin, end, (place,)):
        c.store(place, SCALARS["int64"], begin, end)


@pytest.fixture(autouse=True, params=["own threads", "a library's threads"])
def whose(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whose threads take the shares; four of them."""
    count_visits(False)  # the pool is made with the first kernel
    before = flambeau.get_num_threads()
    team = library.get().team if library.available() else (0, 0, 0)
    if request.param != "own threads" and not all(team):
        pytest.skip("no library is installed that has threads")
    threads._set_team(*((0, 0, 0) if request.param == "own threads" else team))
    flambeau.set_num_threads(4)
    yield request.param
    flambeau.set_num_threads(before)
    threads._set_team(*team)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 100_001])
@pytest.mark.parametrize("grain", [1, 64, 10**9])
def test_each_step_runs_once(nested: bool, size: int, grain: int) -> None:
    visits = np.zeros(size, np.int64)
    for _ in range(5):
        count_visits(nested)(visits, grain)
    assert (visits == 5).all()


def test_what_is_too_little_for_two_threads_is_not_divided() -> None:
    shares = {}
    for size in (1000, 1999, 2000, 100_000):
        ends = np.zeros(size, np.int64)
        note_shares()(ends, 1000)
        shares[size] = np.flatnonzero(ends).tolist()
    assert shares[1000] == shares[1999] == [0]
    assert shares[2000] == [0, 1000]
    assert len(shares[100_000]) == 4 * threads.SHARES_PER_THREAD


def test_several_python_threads_at_once() -> None:
    function = count_visits(False)
    arrays = [np.zeros(50_000, np.int64) for _ in range(6)]

    def work(array: np.ndarray) -> None:
        for _ in range(50):
            function(array, 100)

    workers = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((array == 50).all() for array in arrays)


def test_the_pool_grows_to_what_was_asked_for(whose: str) -> None:
    if whose == "own threads":
        count_visits(False)(np.zeros(1000, np.int64), 1)
        assert threads.pool_size() >= 3


def test_no_second_pool_where_a_library_has_threads() -> None:
    """Threads of two pools would take each other's processors."""
    program = """
import flambeau
from flambeau._backends.cpu import onednn
from flambeau._codegen.machine import threads
flambeau.set_num_threads(2)
x = flambeau.ones(1000, 1000)
y = x @ x  # which loads the library
print(threads.pool_size() if onednn.available() else 0)
(y + y).sum()
print(threads.pool_size() if onednn.available() else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.split() == ["0", "0"]


def test_a_team_of_fewer_threads_than_asked_for() -> None:
    """OpenMP may give a loop fewer threads: they do all of it."""
    program = """
import flambeau
flambeau.set_num_threads(8)
y = flambeau.ones(600, 600) @ flambeau.ones(600, 600)  # which loads the library, where there is one
for size in (70_000, 200_000, 3_000_000):
    x = flambeau.arange(size)
    assert (x + x).equal(2 * x) and (x + x)[-1] == 2 * size - 2
    assert flambeau.layer_norm(flambeau.ones(size // 100, 100), (100,)).abs().sum() == 0
"""
    limited = {**os.environ, "OMP_THREAD_LIMIT": "2"}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60, env=limited)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    program = """
import os, numpy as np, flambeau, sys
flambeau.set_num_threads(3)
flambeau.ones(1000, 1000) @ flambeau.ones(1000, 1000)  # by a library with threads, where there is one
x = flambeau.ones(500_000)
total = float((x + x).sum())
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        ok = float((x + x).sum()) == total
        os._exit(0 if ok else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [0] * 4, codes
assert float((x + x).sum()) == total
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_signals_reach_python() -> None:
    seen = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(threading.current_thread()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        deadline = time.monotonic() + 10
        visits = np.zeros(100_000, np.int64)
        while not seen and time.monotonic() < deadline:
            count_visits(False)(visits, 100)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [threading.main_thread()]
