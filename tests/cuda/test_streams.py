"""Programs with streams (`streams/`) on devices whose streams run out of order, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import flambeau
from tests.support.simulated_cuda import COMPILER, COUNT


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.skipif(flambeau.cuda.is_available(), reason="libraries of the GPU would take the simulated memory")
@pytest.mark.parametrize("count", [1, 2, 4])
def test_on_devices_out_of_order(count: int) -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:benchmark",
        "-p", "tests.support.simulated_device_plugin", "tests/cuda/streams",
    ]  # fmt: skip
    environment = {**os.environ, COUNT: str(count), "FLAMBEAU_SIMULATED_STREAMS": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
