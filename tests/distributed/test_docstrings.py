"""Examples in docstrings that several processes run together."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.test_docs import ROOT


def test_examples_of_collectives_in_two_processes() -> None:
    command = [
        sys.executable,
        "-m",
        "flambeau",
        "launch",
        "--nproc-per-node=2",
        "tests/distributed/docstring_program.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "examples ran" in done.stdout
