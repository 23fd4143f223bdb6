"""The sessions of docs/interpreters.md print what the page shows."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "interpreters.md"


def test_sessions() -> None:
    text = "\n".join(line for line in PAGE.read_text(encoding="utf-8").splitlines() if not line.startswith("```"))
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, PAGE.name, 0)
    assert len(examples.examples) > 15
    complaints: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(verbose=False, optionflags=options).run(examples, out=complaints.append)
    assert not complaints, "".join(complaints)
