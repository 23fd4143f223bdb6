"""The journey of an op in docs/design.md: its sources are those of the files, and its session prints what it shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from tools.journey import BLOCK, PAGE, written

ROOT = Path(__file__).parents[1]
TEXT = PAGE.read_text(encoding="utf-8")
JOURNEY = TEXT[TEXT.index("## One op's journey") : TEXT.index("## Dispatch")]


def test_the_call_is_the_one_that_runs() -> None:
    assert [found[1] for found in BLOCK.findall(JOURNEY)] == ["cumsum"]
    assert written(TEXT) == TEXT, "run python -m tools.journey"


def test_quoted_sources_stand_in_their_files() -> None:
    quoted = re.findall(r"```python\n# (flambeau/\S+)\n(.*?)```", JOURNEY, re.DOTALL)
    assert len(quoted) == 4
    for path, lines in quoted:
        assert lines in (ROOT / path).read_text(encoding="utf-8"), path


def test_named_files_exist() -> None:
    for name in re.findall(r"`((?:_\w+|autograd|flambeau|tests)/[\w/]+\.py)`", JOURNEY):
        assert (ROOT / name).is_file() or (ROOT / "flambeau" / name).is_file(), name


def test_the_session_prints_what_it_shows() -> None:
    session = JOURNEY[JOURNEY.index("```pycon") :].replace("```pycon", "").replace("```", "")
    examples = doctest.DocTestParser().get_doctest(session, {}, PAGE.name, PAGE.name, 0)
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=complaints.append)
    assert examples.examples
    assert not complaints, "".join(complaints)


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"^\| [\w ]+ \| .* \|$", TEXT[TEXT.index("## Words of this code") :], re.MULTILINE)
    assert 10 < len(rows) - 1 <= 25  # the first is the head of the table
