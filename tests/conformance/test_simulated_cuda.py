"""Some entries of the operator database on the CUDA backend with simulated memory.

All of them: `python -m tests.conformance --device simulated`, on a GPU `--device cuda`. Another process, so that the
rest of the tests sees no device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conformance.host import LIST
from tests.support.simulated_cuda import COMPILER

_RUN = """
from tests.conformance.foreign import main
results, gradients = (main("simulated", None, limit=1, every=40, gradients=each) for each in (False, True))
raise SystemExit(results or gradients)
"""


_SIMULATED = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")


@_SIMULATED
def test_the_entries_that_compute_on_the_host_are_those_of_the_list() -> None:
    command = [sys.executable, "-m", "tests.conformance.host", "--every", "40"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(LIST.read_text())) <= 10


@_SIMULATED
def test_results_and_gradients_of_some_entries() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _RUN], check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "entries pass on simulated" in done.stdout
    assert "gradients of entries pass on simulated" in done.stdout
