"""Signals that arrive while oneDNN multiplies leave the heap alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from flambeau._backends.cpu.onednn.library import available, get
from flambeau._backends.cpu.onednn.signal_stack import SignalStack, has_signal_stack
from flambeau._core.process.processor import ON_X86_64

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not ON_X86_64 or not available(), reason="oneDNN's sgemm is not there"
)

_PRODUCTS_UNDER_A_TIMER = """
import signal
import time

import flambeau as torch

torch.set_num_threads(1)
counted = []
signal.signal(signal.SIGALRM, lambda *_: counted.append(1))
pairs = [(torch.rand(rows, length), torch.rand(length, columns)) for rows, length, columns in {shapes}]
expected = [left @ right for left, right in pairs]
signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
end = time.monotonic() + 2
while time.monotonic() < end:
    for (left, right), product in zip(pairs, expected):
        assert torch.equal(left @ right, product)
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(counted) > 100, len(counted)
"""


def test_products_under_a_timer() -> None:
    """Without another stack such a process ended within a second: "corrupted size vs. prev_size"."""
    program = _PRODUCTS_UNDER_A_TIMER.format(shapes=[(40, 128, 256), (128, 256, 256), (33, 4096, 64)])
    environment = {**os.environ, "MALLOC_PERTURB_": "90"}  # what was freed is overwritten, so that damage shows
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_each_thread_that_multiplies_has_one() -> None:
    found: list[bool] = []

    def multiply() -> None:
        get().stream()
        found.append(has_signal_stack())

    thread = threading.Thread(target=multiply)
    thread.start()
    thread.join()
    multiply()
    assert found == [True, True]


def test_a_stack_goes_with_its_owner_and_another_one_is_kept() -> None:
    found: list[bool] = []

    def make() -> None:
        found.append(has_signal_stack())
        stack = SignalStack()
        second = SignalStack()
        found.append(has_signal_stack())
        del second
        found.append(has_signal_stack())
        del stack
        found.append(has_signal_stack())

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert found == [False, True, True, False]
