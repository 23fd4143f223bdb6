"""`fullgraph=True`: in its first call already, a function is told that Python looks at elements in it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ...._core.process.caller import IS_INTERNAL
from ...._dispatch.interpreter import Interpreter
from ...._dispatch.op import Op
from ..recorder import returns_next
from .parts import code_behind


class Looks(Interpreter):
    """Notes where Python looks at elements, other than to return what it finds."""

    repeats = True
    takes_operators_whole = True

    def __init__(self, function: Any) -> None:
        self._own = code_behind(function)
        self.reason: str | None = None

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if op.reads and self.reason is None:
            frame = _users_frame()
            if frame is not None and not (frame.f_code is self._own and returns_next(frame)):
                self.reason = looked(op.name, f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return op(*args)


def looked(name: str, place: str) -> str:
    """Why what Python does next may depend on elements."""
    return f"Python looks at the elements of a tensor, by {name} ({place}): data-dependent branching"


def _users_frame() -> FrameType | None:
    """The innermost frame outside the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and IS_INTERNAL[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame
