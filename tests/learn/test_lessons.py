"""The lessons of `flambeau learn`: solutions pass, typical wrong answers get a sentence that helps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flambeau
from flambeau._dispatch.op import OPS
from flambeau._dispatch.public.registry import load_all
from flambeau._learn.checking import Wrong, check, steps_of
from flambeau._learn.lesson import LESSONS, code_of
from tests.cli.calls import call

from .wrong_answers import WRONG

ROOT = Path(__file__).parents[2]
TYPICAL = [
    pytest.param(name, old, new, words, id=f"{name}-{number}")
    for name, answers in WRONG.items()
    for number, (old, new, words) in enumerate(answers)
]


@pytest.mark.parametrize("name", LESSONS)
def test_the_solution_passes_every_step(name: str) -> None:
    lesson = LESSONS[name]
    load_all()
    before = set(OPS)
    shown = list(check(lesson, lesson.folder / "solution.py.txt"))
    assert shown == [each for each, _, _ in steps_of(lesson)]
    assert set(OPS) == before, "what an answer registers stays in the engine"


@pytest.mark.parametrize("name", LESSONS)
def test_an_exercise_says_that_something_is_left_to_write(name: str) -> None:
    lesson = LESSONS[name]
    with pytest.raises(Wrong, match=r"Something is left to write: line \d+"):
        list(check(lesson, lesson.folder / "exercise.py.txt"))


@pytest.mark.parametrize(("name", "old", "new", "words"), TYPICAL)
def test_a_wrong_answer_gets_a_sentence_that_helps(name: str, old: str, new: str, words: str, tmp_path: Path) -> None:
    solution = LESSONS[name].text("solution.py.txt")
    assert solution.count(old) == 1
    answer = tmp_path / "answer.py"
    answer.write_text(solution.replace(old, new), encoding="utf-8")
    with pytest.raises(Wrong, match=re.escape(words)):
        list(check(LESSONS[name], answer))


def test_every_lesson_has_at_least_five_wrong_answers() -> None:
    assert {name: len(WRONG[name]) >= 5 for name in LESSONS} == dict.fromkeys(LESSONS, True)


@pytest.mark.parametrize("name", LESSONS)
def test_every_lesson_has_its_page_on_the_site(name: str) -> None:
    page = (ROOT / "docs/learn/engine" / f"{name}.md").read_text(encoding="utf-8")
    assert f"flambeau/_learn/{name}/page.md" in page
    assert f"flambeau/_learn/{name}/exercise.py.txt" in page


@pytest.mark.parametrize("name", LESSONS)
def test_the_code_beside_a_lesson_is_that_of_the_engine(name: str) -> None:
    for code in LESSONS[name].code():
        lines = (ROOT / code.path).read_text(encoding="utf-8").splitlines()
        assert "\n".join(lines[code.line - 1 :]).startswith(code.text)


def test_code_with_decorators_begins_at_the_first() -> None:
    assert code_of("_ops/shape/parts.py", "_diagonal").text.startswith("@primitive(")


# ----- the command --------------------------------------------------------------------------------------------------


def test_the_command_lists_the_lessons(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "learn")
    assert result.status == 0
    assert [line.split()[1] for line in result.out.splitlines()[1:10]] == list(LESSONS)


def test_the_command_shows_a_lesson_and_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "learn", "op").out.startswith("# An operation")
    result = call(capsys, "learn", "derivative", "--code")
    assert re.match(r"# flambeau/_ops/pointwise/binary\.py, line \d+\nmul = binary\(", result.out)
    assert "def body" in call(capsys, "learn", "op", "--solution").out


def test_an_exercise_is_written_once_and_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert call(capsys, "learn", "op", "--start", path).status == 0
    assert call(capsys, "learn", "op", "--start", path).status == 1
    result = call(capsys, "learn", "op", "--check", path)
    assert result.status == 1
    assert "left to write" in result.out
    path.write_text(LESSONS["op"].text("solution.py.txt"), encoding="utf-8")
    result = call(capsys, "learn", "op", "--check", path)
    assert result.status == 0
    assert "Next: flambeau learn derivative" in result.out
    assert not hasattr(flambeau, "squareplus")


def test_wrong_calls_are_told_what_there_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = call(capsys, "learn", "derivatve")
    assert result.status == 2
    assert "perhaps derivative" in result.err
    assert call(capsys, "learn", "--code").status == 2
    path = tmp_path / "broken.py"
    path.write_text("def body(x:\n", encoding="utf-8")
    assert "does not run: line 1" in call(capsys, "learn", "op", "--check", path).out
    assert call(capsys, "learn", "op", "--check", tmp_path / "none.py").status == 1
