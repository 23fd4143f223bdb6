"""Locks at a fork: a child never waits for a thread that it does not have, whatever the other threads were doing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

_PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import flambeau
from flambeau._codegen.kernel import kernel
from flambeau._codegen.types import SCALARS

@kernel
def add_number(b, arguments, number):
    "(out): out += number, compiled anew for each number"
    scalar = SCALARS["int64"]
    out = arguments.array(0)
    with b.parallel(out.size(0), 16, out.data, unlock=True) as (c, begin, end, (place,)), c.loop(begin, end) as index:
        c.store(place, scalar, index, c.load(place, scalar, index) + number)

weight = flambeau.ones(2000, requires_grad=True)
numbers = iter(range(10**9))

def draw():
    flambeau.randn(20_000)
    flambeau.randperm(1000)

def compile_kernels():
    values = np.zeros(100, np.int64)
    number = next(numbers)
    add_number(number)(values)
    assert (values == number).all()

def allocate():
    (flambeau.empty(300_000) + 1).sum()

def accumulate():
    (weight * 2).sum().backward()

ACTIONS = (draw, compile_kernels, allocate, accumulate)
for action in ACTIONS:
    action()
stopped = False

def forever(action):
    while not stopped:
        action()

threads = [threading.Thread(target=forever, args=(action,)) for action in ACTIONS]
for thread in threads:
    thread.start()
stalled = 0
for _ in range(int(sys.argv[1])):
    time.sleep(0.002)
    child = os.fork()
    if not child:
        signal.alarm(20)
        for action in ACTIONS:
            action()
        os._exit(0)
    stalled += os.waitpid(child, 0)[1] != 0
stopped = True
for thread in threads:
    thread.join()
print("stalled", stalled)
"""


def test_forks_while_threads_work(tmp_path: Path) -> None:
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "FLAMBEAU_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, "10"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "stalled 0\n", done.stderr


_HELD = """
import os, signal, threading, time
import flambeau
from flambeau._core.process.locks import new_lock, new_reentrant_lock

lock, own = new_lock(), new_reentrant_lock()
half_done = []

def change():
    with lock:
        half_done.append(1)
        inside.set()
        time.sleep(0.2)
        half_done.append(2)

inside = threading.Event()
thread = threading.Thread(target=change)
thread.start()
inside.wait()
with own:  # held by the thread that forks: it still is afterwards, on both sides
    child = os.fork()
    if not child:
        signal.alarm(20)
if not child:
    with lock, own:
        os._exit(len(half_done))
thread.join()
with lock, own:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_a_change_that_is_half_done() -> None:
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", _HELD]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "2\n", done.stderr


_NEVER_GIVEN_BACK = """
import os, signal, threading
from flambeau._core.process import locks

locks._LONGEST_WAIT = 0.1
lock = locks.new_lock()
thread = threading.Thread(target=lock.acquire)
thread.start()
thread.join()
child = os.fork()
if not child:
    signal.alarm(20)
    with lock:
        os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lock.locked())
"""


def test_a_lock_that_is_never_given_back_is_open_in_the_child() -> None:
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", _NEVER_GIVEN_BACK]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "7 True\n", done.stderr


_IMPORTING = """
import os, signal, sys, threading
import flambeau

def load():
    import flambeau.slow_module

sys.path_importer_cache.clear()
flambeau.__path__.append(sys.argv[1])
thread = threading.Thread(target=load)
thread.start()
while "flambeau.slow_module" not in sys.modules:
    pass
child = os.fork()
if not child:
    signal.alarm(20)
    import flambeau.slow_module
    os._exit(flambeau.slow_module.VALUE)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_imports_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\nVALUE = 5\n")
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", _IMPORTING, str(tmp_path)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "5\n", done.stderr


def test_the_package_makes_its_locks_in_one_place() -> None:
    """A lock made elsewhere would not be open in a forked process."""
    names = ("Lock", "RLock", "Condition", "Semaphore")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "flambeau").rglob("*.py"))
        if path != ROOT / "flambeau/_core/process/locks.py"
        for source in [path.read_text()]
        if any(name in source for name in names)  # few do: the others need no parsing
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in names
    ]
    assert not found
