"""A part of PyTorch's operator database under `compile`; the whole of it: `python -m tests.compiler.operators`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..conformance.entries import Entry
from ..support.simulated_cuda import COMPILER
from .operators import examine, examined

_EVERY = 9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", examined()[::_EVERY], ids=repr)
def test_compiled_operators_give_the_same_bits(entry: Entry) -> None:
    for outcome in examine(entry, 1, requires_grad=True):
        assert not outcome.different, outcome
        assert outcome.programs or outcome.reason


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
def test_so_do_those_of_the_simulated_device() -> None:
    """In a process of its own: the rest of the tests sees no device."""
    command = [sys.executable, "-m", "tests.compiler.operators", "--device", "simulated", "--samples", "1"]
    done = subprocess.run([*command, "--part", "5/60", "--gradients"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 compiled" not in done.stdout
