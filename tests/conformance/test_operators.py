"""A part of the conformance suite that is quick enough for every run: the first samples of every entry.

The whole of it: `make conformance`.
"""

from __future__ import annotations

import json

import pytest

from .entries import Entry, entries
from .pages import DATA, PAGE, known_gaps, page
from .run import aspects, examine

_SAMPLES = 2
_ENTRIES = entries()


@pytest.mark.parametrize("entry", _ENTRIES, ids=repr)
def test_first_samples(entry: Entry) -> None:
    """What is not a known gap does as PyTorch does."""
    known = known_gaps().get(entry.name, {})
    for aspect, report in examine(entry, _SAMPLES).items():
        assert aspect in known or not report["failed"], f"{aspect}: {report['examples']}"


def test_known_gaps_name_what_exists() -> None:
    """The list holds nothing that the suite would never look at."""
    possible = {entry.name: {aspect for aspect, _, _ in aspects(entry)} for entry in _ENTRIES}
    for name, gaps in known_gaps().items():
        assert gaps.keys() <= possible[name], name


def test_page_is_made_from_the_data() -> None:
    """The page and the data are of one run, and agree with the list of known gaps."""
    data = json.loads(DATA.read_text())
    assert PAGE.read_text() == page(data)
    assert {name: each["gaps"] for name, each in data["operators"].items() if each["gaps"]} == known_gaps()
    assert set(data["operators"]) == {entry.name for entry in _ENTRIES}
