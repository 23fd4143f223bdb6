"""Parts of parameters that rest in the memory of the host, while an accelerator computes with whole ones.

They are copied to the accelerator when they are gathered, and gradients are copied back when they are added up, in a
queue of the accelerator's beside the one in which it computes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..._core.device import CPU
from ..._core.device import device as Device
from ..._core.tensor import Tensor
from ._rows import Rows

if TYPE_CHECKING:
    from ...cuda._streams import Event, Stream


@functools.cache
def _queue_of_copies() -> Stream:
    """One for all units: they share the way between host and device too."""
    from ...cuda._streams import Stream

    return Stream()


class Offload:
    """How parts come from the host's memory to a device, and gradients go there."""

    def __init__(self, place: Device, pin_memory: bool) -> None:
        self._place = place
        self._pin_memory = pin_memory
        self._copied: Event | None = None

    def at_rest(self, part: Tensor) -> Tensor:
        """A part in the memory of the host: page-locked, if the device is to read it by itself."""
        part = part.to(CPU)
        return part.pin_memory() if self._pin_memory else part

    def settle(self, part: Tensor) -> None:
        """See to it that a part that came later, such as that of a model that began without data, rests likewise."""
        if self._pin_memory and not part.is_pinned():
            part.data = part.detach().pin_memory()

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """A context whose work on the device runs beside what it computes, after what it was given before."""
        if self._place.type != "cuda":
            yield
            return
        from ...cuda._streams import current_stream

        queue = _queue_of_copies()
        queue.wait_stream(current_stream())
        with queue:
            yield

    def _mark(self) -> Event | None:
        return _queue_of_copies().record_event() if self._place.type == "cuda" else None

    def fetched(self, part: Tensor) -> Tensor:
        """A copy of a part on the device. `beside()` is around this."""
        copy = part.to(self._place, non_blocking=self._pin_memory)
        self._copied = self._mark()
        return copy

    def wait_for_parts(self) -> None:
        """Wait until the device has read the parts: they may be changed then."""
        if self._copied is not None:
            self._copied.synchronize()
            self._copied = None

    def sent_to_host(self, rows: Rows) -> Arriving:
        """Gradients on their way to the host. `beside()` is around this."""
        arriving = Arriving(rows.on_host(self._pin_memory), self._mark())
        if self._place.type == "cuda":  # their memory is that of the queue that computes, and this one reads it
            rows.memory.record_stream(_queue_of_copies())
        return arriving


class Arriving:
    """Gradients that are being copied to the host."""

    def __init__(self, rows: Rows, mark: Event | None) -> None:
        self._rows = rows
        self._mark = mark

    def wait(self) -> Rows:
        """The gradients, on the host."""
        if self._mark is not None:
            self._mark.synchronize()
        return self._rows
