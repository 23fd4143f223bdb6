"""A part of PyTorch's operator database under `compile`; the whole of it: `python -m tests.compiler.operators`."""

from __future__ import annotations

import pytest

from ..conformance.entries import Entry
from .operators import examine, examined

_EVERY = 9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", examined()[::_EVERY], ids=repr)
def test_compiled_operators_give_the_same_bits(entry: Entry) -> None:
    for outcome in examine(entry, 1, requires_grad=True):
        assert not outcome.different, outcome
        assert outcome.programs or outcome.reason
