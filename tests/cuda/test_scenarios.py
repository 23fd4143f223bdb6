"""Programs on a CUDA device beside the CPU: on a GPU where there is one, and on the simulated device."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau
from tests.cuda.scenarios import SCENARIOS, differs
from tests.support.simulated_cuda import COMPILER


@pytest.mark.skipif(not flambeau.cuda.is_available(), reason="a GPU")
@pytest.mark.parametrize("name", SCENARIOS)
def test_on_a_gpu(name: str) -> None:
    assert differs(name) is None


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.skipif(flambeau.cuda.is_available(), reason="libraries of the GPU would take the simulated memory")
def test_on_simulated_memory() -> None:
    """In another process, so that the rest of the tests sees no device."""
    command = [sys.executable, "-m", "tests.cuda.scenarios", "--simulated"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
