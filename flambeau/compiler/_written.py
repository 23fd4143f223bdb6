"""Functions as text.

Python's compiler takes some ten kilobytes of memory for a line: long functions are compiled in pieces, and what is
seldom needed when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._core.process.caller import GENERATED
from ._bytecode import compiled_sources

_MOST_LINES = 300

_NAMES = re.compile(r"\b(?:[a-z]+\d+|row)\b")
_ASSIGNED = re.compile(r"((?:[a-z]+\d+|row)(?:, [a-z]+\d+)*),? = ")
"""Variables of checks, and of the sizes among them."""


@dataclass
class Written:
    """A function as text."""

    name: str
    parameters: str
    lines: Sequence[str]

    @property
    def text(self) -> str:
        """All of it."""
        return f"def {self.name}({self.parameters}):\n" + "".join([f"    {line}\n" for line in self.lines or ["pass"]])

    @property
    def file(self) -> str:
        """The file that it is said to be in."""
        return f"{GENERATED}compiled {self.name}>"

    def define_and_call(self, namespace: dict[str, Any], *args: Any) -> Any:
        """Its first call, if it is defined no sooner."""
        define([self], namespace)
        return namespace[self.name](*args)


def define(functions: Sequence[Written], namespace: dict[str, Any]) -> None:
    """Let functions exist."""
    for code in compiled_sources([(each.file, each.text) for each in functions]):
        exec(code, namespace)


def in_pieces(lines: Sequence[str], checks: int, parameters: str) -> tuple[list[Written], list[str]]:
    """Functions for the checks, with which a function of `lines` begins; the lines that call them, and the rest."""
    if checks <= _MOST_LINES:
        return [], list(lines)
    pieces = [lines[start : min(start + _MOST_LINES, checks)] for start in range(0, checks, _MOST_LINES)]
    named = [_names(each) for each in (*pieces, lines[checks:])]
    named_later = [set().union(*named[number:]) for number in range(1, len(named))]
    made: list[Written] = []
    calls: list[str] = []
    known: set[str] = set()
    for piece, here, later in zip(pieces, named, named_later, strict=False):
        given = ", ".join([parameters, *sorted(known & here)])
        assigned = {name for line in piece if (found := _ASSIGNED.match(line)) for name in found[1].split(", ")}
        wanted = "".join([f"{name}, " for name in sorted(assigned & later)])
        known |= assigned
        made.append(Written(f"checks{len(made) + 1}", given, [*piece, f"return ({wanted})"]))
        calls += [f"found = {made[-1].name}({given})", "if found is MISS: return MISS"]
        if wanted:
            calls.append(f"{wanted}= found")
    return made, [*calls, *lines[checks:]]


def _names(lines: Sequence[str]) -> set[str]:
    return set(_NAMES.findall("\n".join(lines)))
