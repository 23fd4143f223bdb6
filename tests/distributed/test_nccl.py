"""Collectives of tensors on GPUs: by a simulated NCCL here, and what is said where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import flambeau
import flambeau.distributed as dist

from ..support.simulated_cuda import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
def test_on_simulated_memory() -> None:
    """In another process, so that the rest of the tests sees no device."""
    command = [sys.executable, "-m", "tests.distributed.nccl_program", "3"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(flambeau.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_without_a_gpu(backend: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="'nccl' is for GPUs, and there is none: use 'gloo'"):
        dist.init_process_group(backend, f"file://{tmp_path}/meeting", world_size=1, rank=0)
    assert not dist.is_initialized()
