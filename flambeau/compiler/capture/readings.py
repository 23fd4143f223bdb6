"""What Python has found in tensors, from call to call: flags are checks of a program, data are graph breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..program.items import Item, Read
from ..program.reads import differs
from .watch import Breaks

_MOST_READINGS = 3
"""So many different things may be found at one place before a read is no check any more, but a break."""
_MANY = 4
"""A call with so many reads, of something other than True and False, looks at data."""


class Unsteady(NamedTuple):
    """Reads that are no checks."""

    reason: str
    breaks: Breaks
    places: set[str]


class _Look(NamedTuple):
    """Where elements were looked at."""

    op: str
    place: str
    breaks: Breaks


class Readings:
    """What the calls of a function have found where they looked at elements."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], list[Any]] = {}
        """By the place, and whether it was the first time in a call, the second and so on."""
        self._latest: list[_Look] = []
        """What the latest recorded call read, but for what is True or False."""

    def note(self, items: Sequence[Item]) -> Unsteady | None:
        """Note the reads of a recorded call; those that differ from earlier ones too often, or several at once."""
        others: list[_Look] = []
        times: dict[str, int] = {}
        most = 0
        self._latest = []
        for each in items:
            if isinstance(each, Read):
                times[each.place] = times.get(each.place, 0) + 1
                found = self._found.setdefault((each.place, times[each.place]), [])
                is_new = all(differs(known, each.call.made) for known in found)
                if type(each.call.made) is not bool:
                    self._latest.append(_Look(each.call.op.name, each.place, each.breaks))
                    if found and is_new:
                        others.append(self._latest[-1])
                if is_new:
                    found.append(each.call.made)
                    most = max(most, len(found))
        return _unsteady(others) if most > _MOST_READINGS or len(others) > 1 else None

    def of_data(self) -> Unsteady | None:
        """All reads of the latest call, if there are many: a call has found something else in one of them."""
        return _unsteady(self._latest) if len(self._latest) >= _MANY else None


def _unsteady(looks: Sequence[_Look]) -> Unsteady:
    breaks: Breaks = {}
    for each in looks:
        for code, lines in each.breaks.items():
            breaks.setdefault(code, set()).update(lines)
    reason = f"Python looks at elements that are others each time, by {looks[0].op} ({looks[0].place})"
    return Unsteady(reason, breaks, {each.place for each in looks})
