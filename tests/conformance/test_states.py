"""A part of the operator database in further states; the whole of it: `python -m tests.conformance --states`."""

from __future__ import annotations

import pytest

from .entries import Entry, entries
from .pages import KNOWN_IN_STATES, known_gaps
from .run import examine, state_aspects

_ENTRIES = entries()
_EVERY = 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", _ENTRIES[::_EVERY], ids=repr)
def test_first_sample(entry: Entry) -> None:
    """What is not a known gap does as PyTorch does, or as the plain call."""
    known = known_gaps(KNOWN_IN_STATES).get(entry.name, {})
    for aspect, report in examine(entry, 1, in_states=True).items():
        assert aspect in known or not report["failed"], f"{aspect}: {report['examples']}"


def test_known_gaps_name_what_exists() -> None:
    """The list holds nothing that the suite would never look at."""
    possible = {entry.name: {aspect for aspect, _, _ in state_aspects(entry)} for entry in _ENTRIES}
    for name, gaps in known_gaps(KNOWN_IN_STATES).items():
        assert gaps.keys() <= possible[name], name
