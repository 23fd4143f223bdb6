"""Which modules a call uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any


def trace_dependencies(callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]) -> list[str]:
    """The modules whose functions ran while `callable` was called with each tuple of arguments."""
    used: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_globals.get("__name__")
        if event == "call" and name is not None:
            used.add(name)

    before = sys.getprofile()
    try:
        sys.setprofile(note)
        for each in inputs:
            callable(*each)
    finally:
        sys.setprofile(before)
    return sorted(used - {__name__})
