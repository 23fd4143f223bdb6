"""Functions as text.

Python's compiler takes some ten kilobytes of memory for a line: long functions are compiled in pieces, and what is
seldom needed when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from typing import Any

from ..._codegen.machine.bytecode import compiled_sources
from ..._core.process.caller import GENERATED

_MOST_LINES = 300

_VARIABLE = r"(?:[np]\d+|row)"
"""Variables of checks: what they look at, sizes, and where sizes are from. Their names are looked for in long texts."""

_NAMED = re.compile(_VARIABLE)
_ASSIGNED = re.compile(rf"({_VARIABLE}(?:, {_VARIABLE})*),? = ")


@dataclass
class Written:
    """A function as text."""

    name: str
    parameters: str
    lines: Sequence[str]
    checks: int = 0
    """How many of the lines are checks, which may be cut into pieces."""

    @property
    def text(self) -> str:
        """All of it."""
        return f"def {self.name}({self.parameters}):\n" + "".join([f"    {line}\n" for line in self.lines or ["pass"]])

    @property
    def file(self) -> str:
        """The file that it is said to be in."""
        return f"{GENERATED}compiled {self.name}>"

    def define_and_call(self, namespace: dict[str, Any], *args: Any) -> Any:
        """Define the function and call it for the first time."""
        pieces, lines = in_pieces(self.lines, self.checks, self.parameters)
        define([*pieces, Written(self.name, self.parameters, lines)], namespace)
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
    made_by = [assigned(each) for each in pieces]
    variables = set().union(*made_by)
    named = [_names(each, variables) for each in (*pieces, lines[checks:])]
    last = {name: number for number, names in enumerate(named) for name in names}
    made: list[Written] = []
    calls: list[str] = []
    before: set[str] = set()
    for number, piece in enumerate(pieces):
        given = ", ".join([parameters, *sorted(before & named[number])])
        wanted = "".join([f"{name}, " for name in sorted(made_by[number]) if last[name] > number])
        before |= made_by[number]
        made.append(Written(f"checks{len(made) + 1}", given, [*piece, f"return ({wanted})"]))
        calls += _calling(made[-1], wanted)
    return made, [*calls, *lines[checks:]]


def unless_known(
    lines: Sequence[str], checks: int, parameters: str, holds: str, known: Container[int]
) -> tuple[Written, list[str]]:
    """A function for the checks, with which a function of `lines` begins; the lines that call it, and the rest.

    Where the expression `holds` is true, those of them that are `known` need not run, and it is not called.
    """
    rest = lines[checks:]
    named = set(_NAMED.findall("\n".join(rest)))
    left = checks_left(lines[:checks], known, named)
    wanted = "".join([f"{name}, " for name in sorted(named & assigned(left))])
    every = Written("all_checks", parameters, [*lines[:checks], f"return ({wanted})"], checks)
    calls = [
        f"if {holds}:",
        *[f"    {line}" for line in left or ["pass"]],
        "else:",
        *[f"    {line}" for line in _calling(every, wanted)],
    ]
    return every, [*calls, *rest]


def _calling(checks: Written, wanted: str) -> list[str]:
    """Lines that call a function of checks, which gives the variables that are `wanted` of it."""
    lines = [f"found = {checks.name}({checks.parameters})", "if found is MISS: return MISS"]
    return [*lines, f"{wanted}= found"] if wanted else lines


def checks_left(checks: Sequence[str], known: Container[int], wanted: Collection[str] = ()) -> list[str]:
    """The checks that are not known, and what assigns the variables that they or the rest, which has `wanted`, name."""
    needed = set(wanted)
    left: list[str] = []
    for position in range(len(checks) - 1, -1, -1):
        line = checks[position]
        if position in known:
            found = None if line.startswith("if ") else _ASSIGNED.match(line)
            if found is None or needed.isdisjoint(found[1].split(", ")):
                continue
        left.append(line)
        needed.update(_NAMED.findall(line))
    return left[::-1]


def assigned(lines: Sequence[str]) -> set[str]:
    """The variables that checks make."""
    return {name for line in lines if (found := _ASSIGNED.match(line)) for name in found[1].split(", ")}


def letting_go(checks: Sequence[str], tensors: Collection[tuple[Any, str]]) -> list[str]:
    """A line behind the checks of gradients: their variables hold nothing, but for the tensors that are still known."""
    held = {array.removesuffix("._array") for _, array in tensors}
    names = [name for name in assigned(checks) if name not in held]
    return [f"{' = '.join(sorted(names))} = None"] if names else []


def _names(lines: Sequence[str], variables: set[str]) -> set[str]:
    """The variables that lines name."""
    return variables & set(_NAMED.findall("\n".join(lines)))
