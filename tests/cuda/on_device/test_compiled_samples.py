"""Some entries of the operator database, and some adversarial programs, compiled on the simulated device.

All of them: `python -m tests.compiler.operators --device simulated` and `python -m tests.compiler.never_stale`. A
GPU's library chooses among its kernels by where matrices lie: there they are the same but for rounding.
"""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from tests.compiler.never_stale import outcomes, programs
from tests.compiler.operators import examine, examined
from tests.conformance.entries import Entry

from .conftest import is_simulated

pytestmark = [
    pytest.mark.skipif(not (torch.cuda.is_available() and is_simulated()), reason="the simulated device"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("entry", examined()[7::140], ids=repr)
def test_operators_give_the_same_bits(entry: Entry) -> None:
    for outcome in examine(entry, 1, True, "cuda"):
        assert not outcome.different, outcome
        assert outcome.programs or outcome.reason


@pytest.mark.parametrize(("module", "name"), programs()[::25])
def test_programs_are_never_stale(module: Any, name: str) -> None:
    expected, found, _ = outcomes(module, name, "cuda")
    assert found == expected
