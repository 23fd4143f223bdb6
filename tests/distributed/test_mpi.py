"""Collectives over MPI, in processes that `mpiexec` started."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau.distributed as dist

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")


def test_without_mpiexec_there_is_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that prefer MPI would otherwise leave each process alone."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not dist.is_mpi_available()
    assert not dist.is_backend_available("mpi")


@pytest.mark.skipif(MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec")
def test_collectives() -> None:
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }  # fmt: skip
    command = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "tests.distributed.mpi_program"]
    run = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "rank 0 is done" in run.stdout
    assert "rank 1 is done" in run.stdout
