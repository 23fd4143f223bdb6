from __future__ import annotations

import pytest

import flambeau
from tests._dispatch.public.test_examples import complaints

from .census import described, entries, generated, lacking, listed


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    return lacking()


@pytest.mark.parametrize("kind", ["parameters", "returns", "example"])
def test_docstrings_only_gain(now: dict[str, list[str]], kind: str) -> None:
    """Every new public callable is described; one that is described now leaves the list of those that are not."""
    known = set(listed()[kind])
    assert sorted(set(now[kind]) - known) == []
    assert sorted(known - set(now[kind])) == [], "now described: run python -m tests.reference --update"


def test_entries_of_parameters_are_found() -> None:
    doc = "Sum.\n\nArgs:\n    a (int): one.\n        More: words.\n    *b, c: two and three.\n\nReturns:\n    d: four\n"
    assert described(doc) == {"a", "b", "c"}
    assert described("Sum.") == set()


def test_examples_of_functions_and_types_that_one_text_describes() -> None:
    assert len(generated()) > 40
    assert not [each for name, doc in generated().items() for each in complaints(flambeau, name, doc)]


def test_almost_every_public_callable_has_an_example(now: dict[str, list[str]]) -> None:
    total = len(list(entries()))
    assert total > 2500
    assert len(now["example"]) <= 0.03 * total
    assert not now["parameters"]
    assert not now["returns"]
