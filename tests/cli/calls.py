"""How the tests call the command: in this process, or as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from flambeau._cli.main import main

ROOT = Path(__file__).parent.parent.parent


class Result(NamedTuple):
    """What a command gave."""

    status: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Result:
    """Run a command in this process."""
    try:
        status = main([str(each) for each in arguments])
    except SystemExit as end:  # argparse
        status = int(end.code or 0)
    captured = capsys.readouterr()
    return Result(status, captured.out, captured.err)


def start(*arguments: object, cwd: Path | None = None, **environment: str) -> Result:
    """Run a command in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "flambeau", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=variables, timeout=60)
    return Result(run.returncode, run.stdout, run.stderr)
