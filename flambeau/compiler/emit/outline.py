"""Programs that are written but for their items, which are still to be planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..program.items import Item, Read, Value
from .source import Source
from .stages import stages_of


@dataclass
class Outline:
    """Such a program. Of the recorded call it holds nothing but what items hold."""

    source: Source
    items: list[Item]
    wanted: list[Value]
    """What is to be there after the items."""
    behind: list[str]
    """Lines that come after them."""

    def fill(self) -> None:
        """Plan the items, and write them."""
        self.source.items(self.items, self.wanted)
        self.source.lines += self.behind

    def function(self) -> Callable[..., Any]:
        """The function that checks a call and runs the recorded program."""
        self.fill()
        made: Callable[..., Any] = self.source.function("call", "args, kwargs")
        describe(made, self.source, self.items)
        return made


def describe(program: Callable[..., Any], source: Source, items: Sequence[Item]) -> None:
    """Let a program know where it looks at elements, and what it consists of."""
    vars(program).update(
        places=places_in(items),
        checks=source.lines[: source.checks],
        missed=source.missed,
        stages=[*stages_of(source.parts), *source.behind],
    )


def places_in(items: Sequence[Item]) -> set[str]:
    """Where elements are looked at."""
    return {each.place for each in items if isinstance(each, Read)}
