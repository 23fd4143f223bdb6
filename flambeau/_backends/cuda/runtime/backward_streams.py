"""Which streams a forward pass ran in: a backward pass in another stream waits for them, and they for its end.

Nodes of autograd are numbered in the order of their creation. So it is enough to note between which numbers a thread
had a stream in use beside the default one: a forward pass pays nothing. A backward pass runs in the stream in which it
is called. Before it begins, that stream waits for those in which its nodes were recorded. When it ends, they wait for
it, since memory that it freed is theirs to use again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, NamedTuple

from ...._core.node import next_sequence_number
from ...._core.slots import SLOTS
from .devices import on_device
from .driver import driver
from .synchronization import HERE

_MOST = 1 << 14
"""So many changes of streams are remembered."""


class _Use(NamedTuple):
    """A stream that a thread had in use, between the numbers of two nodes."""

    begin: int
    end: int
    ordinal: int
    stream: Any


class StreamUses:
    """The streams beside the default ones that threads have and had in use."""

    def __init__(self) -> None:
        self._past: deque[_Use] = deque(maxlen=_MOST)
        self._present: dict[tuple[int, int], tuple[int, Any]] = {}

    def changed(self, stream: Any) -> None:
        """This thread uses another stream on its device from now on."""
        key, now = (get_ident(), HERE.ordinal), next_sequence_number()
        before = self._present.pop(key, None)
        if before is not None:
            self._past.append(_Use(before[0], now, HERE.ordinal, before[1]))
        if stream.ptr:
            self._present[key] = now, stream
            SLOTS.join_streams = self.join

    def _uses_since(self, number: int) -> list[_Use]:
        now = next_sequence_number()
        found = [_Use(begin, now, key[1], stream) for key, (begin, stream) in tuple(self._present.items())]
        for use in reversed(tuple(self._past)):
            if use.end <= number:
                break
            found.append(use)
        return found

    def join(self, sequence: Sequence[int]) -> Callable[[], None]:
        """Let this thread's streams wait for those in which nodes of these numbers were recorded.

        Returns:
            what is to be called when the pass is over.
        """
        numbers = sorted(sequence)
        streams: dict[int, dict[int, Any]] = {}
        covered: dict[int, int] = {}
        for use in self._uses_since(numbers[0]) if numbers else ():
            count = bisect_left(numbers, use.end) - bisect_left(numbers, use.begin)
            if count and (HERE.recording is None or use.begin >= HERE.recording.began):
                streams.setdefault(use.ordinal, {})[use.stream.ptr] = use.stream
                covered[use.ordinal] = covered.get(use.ordinal, 0) + count
        joined = []
        for ordinal in {HERE.ordinal, *streams}:
            with on_device(ordinal):
                library = driver().library
                here, others = library.get_current_stream(), streams.get(ordinal, {})
                if covered.get(ordinal, 0) < len(numbers) and HERE.recording is None:
                    others[0] = library.Stream.null
                others.pop(here.ptr, None)
                for each in others.values():
                    _wait(here, each, library)
                    joined.append((ordinal, each, here))

        def leave() -> None:
            if HERE.recording is None:
                for ordinal, other, here in joined:
                    with on_device(ordinal):
                        _wait(other, here, driver().library)

        return leave


def _wait(stream: Any, other: Any, library: Any) -> None:
    event = library.Event(disable_timing=True)
    event.record(other)
    stream.wait_event(event)


STREAM_USES = StreamUses()
