"""Some entries of the operator database on the CUDA backend with simulated memory.

All of them: `python -m tests.conformance --device simulated`, on a GPU `--device cuda`. Another process, so that the
rest of the tests sees no device.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.simulated_cuda import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.parametrize("what", [[], ["--gradients"]], ids=["results", "gradients"])
def test_some_entries(what: list[str]) -> None:
    command = [sys.executable, "-m", "tests.conformance", "--device", "simulated", "--limit", "1", "--every", "40"]
    done = subprocess.run([*command, *what], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
