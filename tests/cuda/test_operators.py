"""The operator database on a GPU: results and gradients of every entry, beside the CPU's."""

from __future__ import annotations

import pytest

import flambeau
from tests.conformance.entries import Entry, entries
from tests.conformance.foreign import Stand, cuda, examine, known_gaps

pytestmark = pytest.mark.skipif(not flambeau.cuda.is_available(), reason="a GPU")


@pytest.fixture(scope="module")
def stand() -> Stand:
    return cuda()


@pytest.mark.parametrize("gradients", [False, True], ids=["results", "gradients"])
@pytest.mark.parametrize("entry", entries(), ids=repr)
def test_entry(entry: Entry, gradients: bool, stand: Stand) -> None:
    found = examine(entry, stand, 2, gradients)
    assert not found or entry.name in known_gaps(stand), found
