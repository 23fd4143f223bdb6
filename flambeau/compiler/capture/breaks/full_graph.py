"""`fullgraph=True`: a call ends where a graph break is, and leaves tensors and generators as they were before it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ...._core.generator import Generator
from ...._core.process.caller import IS_INTERNAL
from ...._core.storage import owner_of
from ...._dispatch.interpreter import Interpreter
from ...._dispatch.op import Op
from ..._errors import GraphBreak
from ...program.reads import generators_of, go_back, states_of
from ..recorder import returns_next, tensors_in
from ..watch import Watch
from .parts import code_behind


class Looks(Interpreter):
    """Ends a call where Python looks at elements, other than to return what it finds; keeps what the call changes."""

    repeats = True
    takes_operators_whole = True

    def __init__(self, function: Any, watch: Watch) -> None:
        self._own = code_behind(function)
        self._watch = watch
        self.reason: str | None = None
        self.fault: Exception | None = None
        """What went wrong here; from then on nothing is kept."""
        self._made: dict[int, Any] = {}
        """The memory that the call has made, by its identity; it may be gone."""
        self._before: dict[int, tuple[Any, Any]] = {}
        """Memory that was there before, and a copy of it, by its identity."""
        self._versions: dict[int, tuple[Any, int]] = {}
        """Counters of changes and what they said, by their identity."""
        self._states: dict[Generator, Any] = {}

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        given = self.begins(op, args)
        results = op(*args)
        self.ends(results, given)
        return results

    def begins(self, op: Op, args: Sequence[Any]) -> set[int]:
        """Hear that an op is about to run; the memory of its arguments."""
        try:
            if self.fault is None and self.reason is None:
                self._before_op(op, args)
                return {id(owner_of(each._array)) for each in tensors_in(args)}
        except Exception as error:  # it would be raised in the user's code
            self._failed(error)
        return set()

    def ends(self, results: Any, given: set[int]) -> None:
        """Hear what it gives: memory that is none of the arguments' is the call's own."""
        try:
            if self.fault is None and self.reason is None:
                memory = [owner_of(each._array) for each in tensors_in(results)]
                self._made.update({id(each): weakref.ref(each) for each in memory if id(each) not in given})
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Note what went wrong: the call goes on to its end, for nobody could undo what it has done."""
        self.fault = error
        self._watch.stops = False

    def _before_op(self, op: Op, args: Sequence[Any]) -> None:
        """End the call if the op looks at elements; keep what it is about to change."""
        if op.reads:
            frame = _users_frame()
            if frame is not None and not (frame.f_code is self._own and returns_next(frame)):
                self.reason = looked(op.name, f"{frame.f_code.co_filename}:{frame.f_lineno}")
                raise GraphBreak(self.reason)
        for position in op.writes:
            self._remember(args[position])
        if op.draws:
            for generator, state in states_of(*generators_of(args)):
                self._states.setdefault(generator, state)

    def _remember(self, written: Any) -> None:
        """Keep the elements of tensors that are about to be changed, if they were there before the call."""
        for each in tensors_in(written):
            counter, memory = each._counter, owner_of(each._array)
            if counter is not None:
                self._versions.setdefault(id(counter), (counter, counter[0]))
            made = self._made.get(id(memory))
            if id(memory) not in self._before and (made is None or made() is not memory):
                self._before[id(memory)] = memory, memory.copy()

    def undo(self) -> None:
        """Put back what the call has changed."""
        for memory, elements in self._before.values():
            memory[...] = elements
        for counter, version in self._versions.values():
            counter[0] = version
        go_back([*self._states.items()])


def looked(name: str, place: str) -> str:
    """Why what Python does next may depend on elements."""
    return f"Python looks at the elements of a tensor, by {name} ({place}): data-dependent branching"


def _users_frame() -> FrameType | None:
    """The innermost frame outside the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and IS_INTERNAL[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame
