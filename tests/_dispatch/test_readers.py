"""Who knows an op: the page and the list of gaps are as the records say, and the list only becomes shorter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tools import readers


@pytest.fixture(scope="module")
def lines() -> list[readers.Line]:
    """In a process of its own: other tests add ops to the table, which the page does not list."""
    program = "import json; from tools import readers; print(json.dumps(readers.lines()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=readers.ROOT, check=True, capture_output=True, text=True)
    return [readers.Line(*each) for each in json.loads(done.stdout)]


def test_gaps_are_those_listed(lines: list[readers.Line]) -> None:
    """A new op gets `axes`, a body or a rule; what has been mended leaves the list: `python -m tools.readers`."""
    assert readers.gaps(lines) == json.loads(readers.GAPS.read_text(encoding="utf-8"))


LISTED = {"vmap": 34, "DTensor": 145, "ONNX": 194, "compile": 341}
"""How long the lists may be: numbers here only become smaller."""


def test_lists_only_become_shorter(lines: list[readers.Line]) -> None:
    for reader, names in readers.gaps(lines).items():
        assert len(names) <= LISTED[reader]


def _without_backends(page: str) -> list[list[str]]:
    return [line.split("|")[:8] for line in page.splitlines()]


def test_page_is_up_to_date(lines: list[readers.Line]) -> None:
    """Apart from its last columns, which follow every new kernel at the next run of the tool."""
    shown = readers.PAGE.read_text(encoding="utf-8")
    assert _without_backends(shown) == _without_backends(readers.page(lines)), "run python -m tools.readers"


def test_names_in_tables_are_exceptions(lines: list[readers.Line]) -> None:
    """Most rules of `vmap` follow from records; before, 420 names stood in its tables."""
    by_name = [each.name for each in lines if each.vmap in ("rule", "decomposition")]
    assert len(by_name) <= 170
    assert sum(each.vmap == "axes" for each in lines) >= 390
