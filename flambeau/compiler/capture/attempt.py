"""A call that the compiler looks at: the function runs once, whatever becomes of what is around it."""

from __future__ import annotations

import gc
import sys
from typing import Any

from ..._core.modes import THREAD
from .._marks import run_inside

_LEFT_BY_INTERRUPTS = (
    "autocast",
    "forward_level",
    "functions",
    "grad",
    "inference",
    "overrides_disabled",
    "saved_hooks",
)
"""Modes that contexts change."""


class Attempt:
    """One call of a function."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.has_run = False
        self.result: Any = None
        self.error: BaseException | None = None
        """What the function itself raised."""
        self._collects, self._tracer = gc.isenabled(), sys.gettrace()
        modes = THREAD.modes
        self._interpreters = modes.interpreters
        self._modes = {name: getattr(modes, name) for name in _LEFT_BY_INTERRUPTS}

    def run(self) -> Any:
        """Call the function, if that has not been done."""
        return self._run(run_inside, self.function, self.args, self.kwargs)

    def run_plainly(self) -> Any:
        """Call the function as if it were not a compiled one: it is not told by `is_compiling` that it is."""
        return self._run(self.function, *self.args, **self.kwargs)

    def _run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.has_run:
            self.has_run = True
            try:
                self.result = function(*args, **kwargs)
            except BaseException as error:
                self.error = error
                raise
        elif self.error is not None:
            raise self.error  # whoever made the call has failed meanwhile
        return self.result

    def run_as(self, function: Any) -> Any:
        """Call another function in place of this one, which does the same."""
        self.function = function
        return self.run()

    def put_back(self, is_interrupt: bool) -> None:
        """Let nobody look on any more: the compiler has failed somewhere, or the user has interrupted it.

        An interrupt is raised in whatever looks on, too: as a context is entered or left, which then does not change
        the modes back.
        """
        sys.setprofile(None)
        sys.settrace(self._tracer)
        modes = THREAD.modes
        modes.interpreters = self._interpreters
        if is_interrupt:
            for name, value in self._modes.items():
                setattr(modes, name, value)
        modes.refresh()
        if self._collects:
            gc.enable()
