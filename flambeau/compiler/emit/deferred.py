"""Programs that are written when a call first needs them: the one that was recorded has had enough to do.

Which kernels a program has depends on settings, on the number of threads say. So it is written only while they are
those under which it was recorded: it would not run under others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.backend import deferring_launches
from ..._core.process.collector import collector_paused
from ..._core.process.locks import new_reentrant_lock
from ..capture.guards import MISS

Program = Callable[..., Any]


class Later:
    """Stands for a program that is not written yet."""

    def __init__(
        self,
        write: Callable[[], Program],
        are_as_recorded: Callable[[], bool],
        places: set[str],
        programs: list[Program],
    ) -> None:
        self._write: Callable[[], Program] | None = write
        self._are_as_recorded = are_as_recorded
        self._written: Program | None = None
        self._programs = programs
        """Where the program is to stand in the place of this one."""
        self._lock = new_reentrant_lock()
        self.places = places
        """Where it looks at elements."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._are_as_recorded():
            return MISS
        program = self.written()
        return MISS if program is None else program(args, kwargs)

    def written(self) -> Program | None:
        """The program; None: it is just being written by this thread, or that has failed."""
        with self._lock:
            write, self._write = self._write, None  # it holds what was recorded, and can be used once
            if write is not None:
                stays = self._are_as_recorded()
                with collector_paused(), deferring_launches():
                    self._written = write()
                del write
                for position, each in enumerate(self._programs):
                    if each is self:
                        self._programs[position : position + 1] = [self._written] if stays else []
            return self._written
