"""The tests of a device (`on_device/`) on the simulated one, in a process of its own: the others see no device."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau
from tests.support.simulated_cuda import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.skipif(flambeau.cuda.is_available(), reason="libraries of the GPU would take the simulated memory")
def test_on_the_simulated_device() -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:benchmark",
        "-p", "tests.support.simulated_device_plugin", "tests/cuda/on_device",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
