"""`flambeau learn`: lessons about how a framework works, with exercises that run inside the engine."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from .._learn.checking import Wrong, check
from .._learn.lesson import LESSONS, Lesson
from .terminal import CommandError, coloured, say, table

SUMMARY = "how a framework works: lessons with exercises that are checked"
DESCRIPTION = (
    "Lessons about the engine itself: an operation, a derivative, a kernel, a capture, a collective. Each has an "
    "exercise: "
    "write its file with --start, fill it in, and let --check try it inside the engine. Without a lesson, lists them."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "lesson", nargs="?", help="the name of a lesson: its page is shown, unless an option says otherwise"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--start", nargs="?", const="", metavar="FILE", help="write the exercise to FILE (default: LESSON.py)"
    )
    what.add_argument("--check", type=Path, metavar="FILE", help="check the answer in FILE, which is run")
    what.add_argument(
        "--code", action="store_true", help="show the engine's own code on the subject, with file and line"
    )
    what.add_argument("--solution", action="store_true", help="show one good answer")


def run(options: argparse.Namespace) -> int:
    """List the lessons, show one, or check an answer."""
    if options.lesson is None:
        if options.start is not None or options.check or options.code or options.solution:
            raise CommandError(f"which lesson? One of {', '.join(LESSONS)}", 2)
        return _list()
    lesson = LESSONS.get(options.lesson)
    if lesson is None:
        names = difflib.get_close_matches(options.lesson, LESSONS, 1) or LESSONS
        raise CommandError(f"there is no lesson {options.lesson!r}; perhaps {' or '.join(names)}", 2)
    if options.start is not None:
        return _start(lesson, Path(options.start or f"{lesson.name}.py"))
    if options.check is not None:
        return _check(lesson, options.check)
    if options.code:
        _show_code(lesson)
    elif options.solution:
        say(lesson.text("solution.py.txt").rstrip())
    else:
        say(lesson.text("page.md").rstrip())
        say(f"\nTo begin: flambeau learn {lesson.name} --start")
    return 0


def _list() -> int:
    rows = [(str(number), name, lesson.title) for number, (name, lesson) in enumerate(LESSONS.items(), 1)]
    for line in table(("", "lesson", "about"), rows, frozenset({0})):
        say(line)
    say("\nflambeau learn LESSON shows its page, with --start writes its exercise, with --check FILE tries an answer.")
    return 0


def _start(lesson: Lesson, path: Path) -> int:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(lesson.text("exercise.py.txt"))
    except FileExistsError:
        raise CommandError(f"{path} is there already: name another file, or remove it") from None
    say(f"Wrote {path}. Fill it in, then: flambeau learn {lesson.name} --check {path}")
    return 0


def _check(lesson: Lesson, path: Path) -> int:
    try:
        for shown in check(lesson, path):
            say(f"{coloured('ok', 'bold')}     {shown}")
    except Wrong as wrong:
        say(f"{coloured('wrong', 'red')}  {wrong}")
        return 1
    say(f"\nThat is right. The engine's own code on the subject: flambeau learn {lesson.name} --code")
    names = list(LESSONS)
    following = names[names.index(lesson.name) + 1 :]
    if following:
        say(f"Next: flambeau learn {following[0]}")
    return 0


def _show_code(lesson: Lesson) -> None:
    for code in lesson.code():
        say(coloured(f"# {code.path}, line {code.line}", "bold"))
        say(code.text + "\n")
