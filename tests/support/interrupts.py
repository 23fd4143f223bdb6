"""Interrupts a program at every place where Python may raise `KeyboardInterrupt`, one after the other.

CPython looks for signals where a function begins, where a loop turns back, and after a call of a function written in C;
not in between. `interrupted` counts how often a program comes by a function's begin or such a call inside the package,
and raises at one of them, through the profile function, which is called at the same places.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

from flambeau._core.modes import THREAD, Modes
from flambeau._core.process.caller import GENERATED, PACKAGE
from flambeau._dispatch.arguments.autocast import autocast_key, autocast_nesting


class Interrupt(KeyboardInterrupt):
    """What is raised in place of the user's interrupt."""


def modes_now() -> dict[str, Any]:
    """What an interrupt must not leave changed in this thread."""
    modes = THREAD.modes
    found = {name: getattr(modes, name) for name in Modes.__slots__ if name not in ("__weakref__", "saved_hooks")}
    return found | {"saved_hooks": list(modes.saved_hooks), "casts": autocast_key(), "nesting": autocast_nesting()}


def interrupted(run: Callable[[], Any], at: int) -> tuple[int, bool, str]:
    """Run a program and interrupt it at the `at`-th place, 0: nowhere.

    How many places it came by, whether it was interrupted, and where.
    """
    count, where = 0, ""

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count, where
        if event not in _EVENTS or not frame.f_code.co_filename.startswith((PACKAGE, GENERATED)):
            return
        if event == "call" and not _is_checked_at_its_start(frame.f_code):
            return
        if event == "return" and frame.f_code.co_name not in _CALLED_BY_C:
            return
        count += 1
        if count == at:
            where = f"{frame.f_code.co_filename.rpartition('flambeau/')[2]}:{frame.f_lineno} {event}"
            sys.setprofile(None)
            raise Interrupt

    sys.setprofile(note)
    try:
        run()
    except Interrupt:
        return count, True, where
    finally:
        sys.setprofile(None)
    return count, bool(where), where


_EVENTS = ("call", "c_return", "return")
_CALLED_BY_C = ("__init__", "__new__", "__call__")
"""Methods that CPython's own code calls: it looks for signals after that, too."""


@cache
def _is_checked_at_its_start(code: CodeType) -> bool:
    """Whether signals are looked for as a function begins: see `flambeau._core.process.interrupts`."""
    return all(each.arg < 2 for each in dis.get_instructions(code) if each.opname == "RESUME" and each.arg is not None)


def sweep(prepared: Callable[[], Callable[[], Any]], every: int = 1, most: int = 0) -> tuple[int, list[str]]:
    """Interrupt a program at every place, or every so many: how many were tried, and where modes were left changed.

    `prepared` gives the program anew, as an interrupt may leave it anywhere. `most`: no more places than that.
    """
    prepared()()  # the first run also fills caches: places of it that later runs do not come by
    total = interrupted(prepared(), 0)[0]
    step = max(every, -(-total // most) if most else 1)
    tried, wrong = 0, []
    for at in range(1, total + 1, step):
        run = prepared()
        before = modes_now()
        _, has_raised, where = interrupted(run, at)
        tried += has_raised
        after = modes_now()
        changed = [name for name in before if before[name] != after[name]]
        if changed:
            wrong.append(f"{where}: {', '.join(changed)}")
            _put_back(before)
    return tried, wrong


def _put_back(before: dict[str, Any]) -> None:
    for name in Modes.__slots__:
        if name != "__weakref__":
            setattr(THREAD.modes, name, before[name])
