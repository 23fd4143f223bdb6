"""Programs on a CUDA device beside the CPU: on a GPU where there is one, and on the simulated device."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau
from tests.cuda import beside_pytorch
from tests.cuda.scenarios import SCENARIOS, differs
from tests.cuda.user_programs import PROGRAMS
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


@pytest.mark.skipif(not flambeau.cuda.is_available(), reason="a GPU")
@pytest.mark.parametrize("name", PROGRAMS)
def test_users_programs_on_a_gpu(name: str) -> None:
    assert beside_pytorch.differs(PROGRAMS[name], {}, True) is None


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.skipif(flambeau.cuda.is_available(), reason="libraries of the GPU would take the simulated memory")
def test_users_programs_on_simulated_memory() -> None:
    command = [sys.executable, "-m", "tests.cuda.scenarios", "--beside-pytorch", "--simulated"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_results_that_differ_are_told() -> None:
    """Numbers, dtypes, shapes, texts and counts: what the comparison must not overlook."""
    torch = flambeau
    plain = beside_pytorch.plain
    same = plain(torch, [torch.ones(2), 1.0, "a", True])
    assert beside_pytorch.difference(same, same) is None
    others = [
        [torch.ones(2) * 1.001, 1.0, "a", True], [torch.ones(2).double(), 1.0, "a", True],
        [torch.ones(3), 1.0, "a", True], [torch.ones(2), 1.1, "a", True], [torch.ones(2), 1.0, "b", True],
        [torch.ones(2), 1.0, "a", 1],
        [torch.ones(2), 1.0, "a"],
    ]  # fmt: skip
    for each in others:
        assert beside_pytorch.difference(same, plain(torch, each)) is not None
    assert len(PROGRAMS) >= 100
    assert len({each.kind for each in PROGRAMS.values()}) >= 12
