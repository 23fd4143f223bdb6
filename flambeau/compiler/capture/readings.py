"""What Python has found in tensors, from call to call: flags are checks of a program, data are graph breaks."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..._core.tensor import Tensor
from ..._dispatch.interpreter import Watcher
from ..._dispatch.op import Op
from ..program.items import Item, Read
from ..program.reads import differs
from .watch import Breaks, frame_that_looks, lines_in, users_frame

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


class Seen(Watcher):
    """Notes, while it is entered, what Python finds in tensors, other than True and False.

    To record a call takes as long as some 20 plain ones. A mixture of experts looks at data in every layer, and finds
    other positions each time: two calls that are only looked at say so, and nothing is recorded in vain.
    """

    repeats = True
    takes_operators_whole = True

    def __init__(self, codes: Container[CodeType]) -> None:
        super().__init__()
        self._codes = codes
        """The code that counts as somebody who looks."""
        self._times: dict[str, int] = {}
        self.found: dict[tuple[str, int], tuple[_Look, Any]] = {}
        """By the place, and whether it was the first time in the call, the second and so on."""
        self.fault: Exception | None = None
        """What went wrong here; from then on nothing is noted."""

    @property
    def are_many(self) -> bool:
        """Whether the call looks at data, if it finds something else the next time."""
        return self.fault is None and len(self.found) >= _MANY

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        if self.fault is not None or not (op.reads or getattr(op.shape, "refuses", False)):
            return
        try:
            if not op.reads:
                for each in result if isinstance(result, (tuple, list)) else [result]:
                    self._note("sizes", each._array.shape if isinstance(each, Tensor) else None)
            elif type(result) is not bool:
                self._note(op.name, result.copy() if hasattr(result, "copy") else result)
        except Exception as error:  # it would be raised in the user's code
            self.fault = error

    def _note(self, name: str, value: Any) -> None:
        frame = frame_that_looks(sys._getframe(2), self._codes)
        if frame is None:
            return
        place, user = _place(frame), users_frame(frame)
        self._times[place] = time = self._times.get(place, 0) + 1
        self.found[place, time] = _Look(name, _place(user), lines_in(frame)), value

    def others(self, before: Seen) -> Unsteady | None:
        """The reads that found something else than in an earlier call, if there are several."""
        if self.fault is not None:
            return None
        known = before.found
        looks = [look for key, (look, value) in self.found.items() if key in known and differs(known[key][1], value)]
        return _unsteady(looks) if len(looks) > 1 else None


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _unsteady(looks: Sequence[_Look]) -> Unsteady:
    breaks: Breaks = {}
    for each in looks:
        for code, lines in each.breaks.items():
            breaks.setdefault(code, set()).update(lines)
    reason = f"Python looks at elements that are others each time, by {looks[0].op} ({looks[0].place})"
    return Unsteady(reason, breaks, {each.place for each in looks})
