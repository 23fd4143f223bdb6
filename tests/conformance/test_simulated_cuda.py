"""Some entries of the operator database on the CUDA backend with simulated memory.

All of them: `python -m tests.conformance --device simulated`, on a GPU `--device cuda`. Another process, so that the
rest of the tests sees no device.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.simulated_cuda import COMPILER

_RUN = """
from tests.conformance.foreign import main
results, gradients = (main("simulated", None, limit=1, every=40, gradients=each) for each in (False, True))
raise SystemExit(results or gradients)
"""


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
def test_results_and_gradients_of_some_entries() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _RUN], check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "entries pass on simulated" in done.stdout
    assert "gradients of entries pass on simulated" in done.stdout
