"""What a pool of device memory did, step by step, with the lines that asked for it: for snapshots and their pages."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

from ...._core.process.caller import IS_INTERNAL, Place, line_of
from .block import Block

_DEEPEST = 64

Stack = tuple[Place, ...]
"""The user's lines, the innermost first."""


class Entry(NamedTuple):
    """A step of the allocator: memory given out, given back, or refused."""

    action: str
    address: int
    size: int
    stream: int
    pool: int
    stack: Stack
    time: int
    """In microseconds since 1970."""
    free: int = 0
    """For a request that failed: what the device had."""


def users_stack() -> Stack:
    """The lines outside of the package that led here."""
    frame: FrameType | None = sys._getframe(1)
    found: list[Place] = []
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        if not IS_INTERNAL[code.co_filename]:
            found.append((code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


class History:
    """The last steps of a pool, or only the stacks of what is in use now (`keeps_steps` False)."""

    def __init__(self, keeps_steps: bool, keeps_stacks: bool, most: int, skipped: Iterable[str] = ()) -> None:
        self.keeps_steps = keeps_steps
        self._skipped = frozenset(skipped)
        self._stack: Callable[[], Stack] = users_stack if keeps_stacks else tuple
        self.entries: deque[Entry] = deque(maxlen=min(most, sys.maxsize))

    def allocated(self, block: Block) -> None:
        """A block is handed out; from now on it tells when it is freed."""
        block.stack = stack = self._stack()
        if self.keeps_steps:
            self._note("alloc", block.pointer, block.requested or block.size, block, stack)
            block.note = _Freed(self, block)

    def freed(self, block: Block) -> None:
        """Nobody needs a block any more. This may run anywhere."""
        stack = self._stack()
        self._note("free_requested", block.pointer, block.requested or block.size, block, stack)
        if block.users is None:
            self._note("free_completed", block.pointer, block.requested or block.size, block, stack)

    def completed(self, block: Block) -> None:
        """No stream works with a freed block any more."""
        if self.keeps_steps:
            self._note("free_completed", block.pointer, block.requested or block.size, block, ())

    def segment(self, action: str, block: Block, size: int) -> None:
        """A segment came from the device, or went back."""
        if self.keeps_steps:
            self._note(action, block.pointer, size, block, self._stack())

    def failed(self, nbytes: int, stream: int, free: int) -> None:
        """Note a request for which the device had no memory."""
        if self.keeps_steps:
            self.entries.append(Entry("oom", 0, nbytes, stream, 0, self._stack(), _now(), free))

    def _note(self, action: str, address: int, size: int, block: Block, stack: Stack) -> None:
        if action in self._skipped:
            return
        shelf = block.shelf
        self.entries.append(Entry(action, address, size, shelf.stream, shelf.pool, stack, _now()))


class _Freed:
    """In place of a block's `note`: writes down that it is freed, once."""

    __slots__ = ("_block", "_history")

    def __init__(self, history: History, block: Block) -> None:
        self._history, self._block = history, block

    def __call__(self, numbers: Any) -> None:
        block = self._block
        block.note = block.shelf.note
        block.note(numbers)
        self._history.freed(block)


def _now() -> int:
    return time.time_ns() // 1000


def frames_of(stack: Stack) -> list[dict[str, Any]]:
    """A stack in PyTorch's form."""
    found = []
    for place in stack:
        file, line, _ = line_of(place)
        found.append({"filename": file, "line": line, "name": place[0].co_name})
    return found


def traces_of(history: History | None) -> list[dict[str, Any]]:
    """The steps in PyTorch's form."""
    if history is None:
        return []
    found = []
    for entry in tuple(history.entries):
        step = {
            "action": entry.action, "addr": entry.address, "size": entry.size, "stream": entry.stream,
            "time_us": entry.time, "pool_id": (0, entry.pool), "compile_context": "N/A", "user_metadata": "",
            "frames": frames_of(entry.stack),
        }  # fmt: skip
        if entry.action == "oom":
            del step["addr"]
            step["device_free"] = entry.free
        found.append(step)
    return found
