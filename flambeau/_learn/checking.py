"""Tries an answer: runs its file, then the lesson's steps on it, and words what goes wrong.

What an answer registers in the engine is taken out again afterwards, so that one process can check many.
"""

from __future__ import annotations

import importlib
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import flambeau

from .._dispatch.op import OPS
from .._dispatch.public.registry import FUNCTIONS, METHODS, load_all
from .lesson import Lesson

Step = Callable[[Any], None]


class Wrong(Exception):
    """Something is wrong with an answer; the message says to the learner what, and where to look."""


class Steps(list[tuple[str, str, Step]]):
    """The steps of a check, in order: what each shows if it passes, and advice if the answer raises in it."""

    def step(self, shows: str, advice: str = "") -> Callable[[Step], Step]:
        """Add the decorated function, which takes the answer's module and raises `Wrong` if it is not right."""

        def add(function: Step) -> Step:
            self.append((shows, advice, function))
            return function

        return add


def steps_of(lesson: Lesson) -> Steps:
    """The steps that check an answer to a lesson."""
    steps: Steps = importlib.import_module(f"flambeau._learn.{lesson.name}.check").STEPS
    return steps


def check(lesson: Lesson, path: Path) -> Iterator[str]:
    """What each step shows, as long as they pass; raises `Wrong` at the first that does not."""
    source = path.read_text(encoding="utf-8")
    name = str(path)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    with _taken_out_again(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = ModuleType("answer")
        answer.__file__ = name
        try:
            exec(compile(source, name, "exec", dont_inherit=True), vars(answer))
        except Exception as error:
            raise Wrong(f"The file does not run: {_words(error, name)}") from error
        for shows, advice, step in steps_of(lesson):
            try:
                step(answer)
            except Wrong:
                raise
            except Exception as error:
                left = isinstance(error, NotImplementedError) and _lines(error)[-1].filename == name
                told = "Something is left to write: " if left else ""
                raise Wrong(f"{told}{_words(error, name)}\n{'' if left else advice}".rstrip()) from error
            yield shows


def asked_for(answer: Any, name: str, kind: str = "function") -> Any:
    """What the answer defines under a name."""
    found = getattr(answer, name, None)
    if found is None:
        raise Wrong(f"The file defines no {name}: the exercise asks for a {kind} of that name.")
    return found


def _words(error: Exception, name: str) -> str:
    """An error with the learner's own line."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}."
    own = [each for each in _lines(error) if each.filename == name]
    told = str(error).partition("\n")[0]
    words = type(error).__name__ + (f": {told}" if told else "")
    return f"line {own[-1].lineno}, `{own[-1].line}`, raises {words}" if own else f"it raises {words}"


def _lines(error: Exception) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


@contextmanager
def _taken_out_again() -> Iterator[None]:
    """Take what is registered inside out of the engine's tables again."""
    load_all()
    functions = {space: dict(names) for space, names in FUNCTIONS.items()}
    methods, ops = dict(METHODS), dict(OPS)
    try:
        yield
    finally:
        for space, names in FUNCTIONS.items():
            for added in names.keys() - functions.get(space, {}).keys():
                del names[added]
                vars(flambeau).pop(added, None)
        for added in METHODS.keys() - methods.keys():
            del METHODS[added]
            delattr(flambeau.Tensor, added)
        for added in OPS.keys() - ops.keys():
            del OPS[added]
