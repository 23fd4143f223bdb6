"""The code on every guide runs: sessions print what the page shows, programs print what the block behind them shows."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import flambeau

DOCS = Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CODE = ("python", "pycon")
RUN_ELSEWHERE = {
    "checkpoints.md",  # tests/serialization/test_page.py
    "design.md",  # tests/test_op_journey.py, tests/test_docs.py
    "distributed.md",  # its programs need a launcher; its session runs here, below
    "errors.md",  # tests/test_docs.py
    "resume.md",  # tests/utils/test_training_state.py
    "stepping.md",  # tests/test_docs.py
}
FLEXIBLE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and body of each fenced block of a page."""
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


PAGES = sorted(
    page.name
    for page in DOCS.glob("*.md")
    if page.name not in RUN_ELSEWHERE and any(language in CODE for language, _ in blocks(page.name))
)


@pytest.fixture
def namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Names that the blocks of a page share, in a module, so that what they define can be pickled and compiled."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    threads, state = flambeau.get_num_threads(), flambeau.get_rng_state()
    try:
        yield vars(module)
    finally:
        flambeau.set_num_threads(threads)
        flambeau.set_rng_state(state)


def complaints_about(session: str, names: dict[str, object], page: str) -> str:
    """What a session prints otherwise than the page shows."""
    test = doctest.DocTestParser().get_doctest(session, names, page, page, 0)
    test.globs = names
    found: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=FLEXIBLE).run(test, out=found.append, clear_globs=False)
    return "".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_code_of_a_page(page: str, namespace: dict[str, object], tmp_path: Path) -> None:
    printed: str | None = None
    for number, (language, body) in enumerate(blocks(page)):
        if language == "text" and printed is not None:
            assert printed == body
            printed = None
        elif language in CODE and ">>>" in body:
            assert not complaints_about(body, namespace, page)
        elif language in CODE:
            assert not printed, f"the page does not show that its program prints {printed!r}"
            file = tmp_path / f"block{number}.py"  # `compile`, `jit.script` and errors read the source of a function
            file.write_text(body, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, str(file), "exec"), namespace)
            printed = out.getvalue() or None
    assert not printed, f"the page does not show that its program prints {printed!r}"


def test_session_of_the_page_on_processes(namespace: dict[str, object]) -> None:
    sessions = [body for _, body in blocks("distributed.md") if ">>>" in body]
    assert sessions
    assert not complaints_about("\n".join(sessions), namespace, "distributed.md")
