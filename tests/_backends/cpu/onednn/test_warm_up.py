"""Kernels that the library writes in a thread: who comes too early waits, and so does a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from flambeau._backends.cpu.onednn import library, warm_up
from flambeau._core.process.processor import ON_X86_64

ROOT = Path(__file__).parents[4]
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

pytestmark = pytest.mark.skipif(
    not library.available() or not ON_X86_64 or _CORES < 2, reason="needs the library, and a core for the thread"
)

EARLY = """
import os, threading
import numpy as np
from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn import library, warm_up
from flambeau._backends.tiers import FAMILIES

left, right = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
begins, write = threading.Event(), warm_up._write
warm_up._write = lambda library: begins.wait() and write(library)
library.get()
assert warm_up.are_being_written()
"""

PRODUCT = """
assert onednn.gemm(left, right).tolist() == [[3, 3], [12, 12]]
"""

FORKED = f"""
begins.set()
child = os.fork()
if not child:
    assert not warm_up.are_being_written(){PRODUCT.replace(chr(10), chr(10) + "    ")}
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_without_a_thread_the_first_product_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        started.append(thread)
        raise RuntimeError("can't start new thread")

    started: list[threading.Thread] = []
    while warm_up.are_being_written():
        time.sleep(0.01)
    monkeypatch.setattr(threading.Thread, "start", start)
    warm_up.write_kernels(library.get())
    assert started
    assert not warm_up.are_being_written()


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", EARLY + program], cwd=ROOT, check=True, timeout=120)


def test_a_fork_waits() -> None:
    run(FORKED + PRODUCT)


def test_who_comes_early_imports_what_comes_next() -> None:
    run(f"assert 'pointwise' not in FAMILIES{PRODUCT}assert 'pointwise' in FAMILIES\nbegins.set()\n")
