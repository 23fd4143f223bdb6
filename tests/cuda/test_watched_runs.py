"""A run on which somebody looks asks the same of a device, in the same order, as one on which nobody does."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau
from flambeau._core.modes import THREAD

from .watched_runs import ASKED, Listener, compared


@pytest.mark.skipif(
    flambeau.cuda.is_available(), reason="libraries of the GPU would take the memory of a device that is idle"
)
def test_watched_runs_have_the_kernels_of_plain_ones() -> None:
    """In a process of its own: the others see no device."""
    command = [sys.executable, "-m", "tests.cuda.watched_runs"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *different, last = done.stdout.splitlines()
    assert not different, "\n".join(different)
    count, heard = int(last.split()[0]), int(last.split()[3])
    assert count >= 260
    assert heard > 20 * count


def test_what_differs_is_said() -> None:
    def step() -> None:
        ASKED.append(("launch", "one"))
        if THREAD.modes.watcher is not None:
            ASKED.append(("launch", "another"))

    assert compared(step, Listener()) == ("1 and 2 calls; number -1: the longer of them goes on", 1)
    assert compared(lambda: ASKED.append(("launch", "one")), Listener()) == ("", 1)
