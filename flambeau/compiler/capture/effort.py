"""What compiling costs beside what it gains: attempts have a budget of time, and parts have to be quicker than Python.

To record a call takes as long as some 20 plain ones. A function with a graph break at some depth is recorded again and
again, part by part. So all attempts of a function and its parts together may take two seconds, and later no more than a
tenth of the time that its calls take otherwise. Once a call could not be compiled, nobody knows whether any will: from
then on attempts may take three plain calls, and later a tenth of the time of calls until a part of the function has a
program, then a twenty-fifth and whatever programs have saved, unless calls are too short for anybody to notice. When
nothing is attempted any more, some calls run in parts and some eagerly, by turns. If those in parts take longer, the
function runs eagerly from then on, or, where there was no time for all attempts, until there is. It does so, too, while
none of its parts has a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from .attempt import Attempt

try:
    from time import thread_time
except ImportError:  # in the browser, which has one thread
    thread_time = perf_counter

_FREE_SECONDS = 2.0
"""All attempts together may take so long, however short calls are."""
_SHARE = 0.1
"""The time that further attempts may take, beside that of calls which run eagerly or in parts."""
_FREE_CALLS = 3
"""All attempts together may take as long as so many plain calls, once a call was refused."""
_SHARE_FOR_FIRST, _SHARE_OF_REFUSED = 0.1, 0.04
"""The time that further attempts may take then, beside that of calls: for the first program of a part, and for others,
which may take what programs have saved, too.
"""
_FIRST = 3
"""What was attempted before there was a plain call counts as so many: nobody knows how much of it was not cold."""
_SHORT = 1e-3
"""Calls that take fewer seconds have the budget in seconds, refused or not: theirs is all that anybody could notice."""
_QUIET_CALLS = 8
"""So many calls in parts without an attempt come before any is timed."""
_TIMED_CALLS = 5
"""So many calls in parts, and so many eager ones, are timed."""
_TIMED_PAIRS = 15
"""So many calls by programs, and so many eager ones, are timed."""
_CALLS_BEFORE, _REST = 64, 1024
"""So many calls run programs before they are timed; so many run eagerly where that is quicker."""
_SLOWER = 1.05
"""A call that takes so many times as long as another is slower than it."""


class Effort:
    """The time that a function and its parts have taken."""

    def __init__(self) -> None:
        self._attempts = 0.0
        self._cold = 0.0
        """What attempts took before there was a plain call: imports and the making of kernels are part of it."""
        self._calls = 0.0
        self._shortest = math.inf
        self._began: float | None = None
        """When the present call began; None: there is none."""
        self.was_attempted = False
        """Whether something was attempted in the present call."""
        self.lacks_time = False
        """Whether an attempt was put off."""
        self.was_refused = False
        """Whether a call could not be compiled."""
        self.is_invested = False
        """Whether the present call has led to the first program of a function that was never refused: it will pay."""
        self.hits = 0
        """How many calls were programs, each of which stands for a plain one."""
        self.programs = 0
        """How many programs the parts of the function have got."""
        self.gain = 0.0
        """How much less time a call in parts takes than an eager one, as far as it is known."""
        self._saved = 0.0
        """The time that calls in parts have saved."""

    def allows(self, overdue: bool = False) -> bool:
        """Whether there is time for one more attempt, which is then made; `overdue`: not to make it costs as much."""
        if overdue or (self.was_attempted and not self.was_refused) or self.has_time():
            self.was_attempted = True
            return True
        self.lacks_time = True
        return False

    def has_time(self) -> bool:
        """Whether there is time for attempts."""
        if not self.was_refused or self._shortest < _SHORT:
            return self._attempts + self._cold <= max(_FREE_SECONDS, _SHARE * self._calls)
        if self._shortest is math.inf:
            return True
        begun = 0.0 if self._began is None else max(0.0, thread_time() - self._began - self._shortest)
        calls = self._calls + self.hits * self._shortest
        cold = min(self._cold, _FIRST * self._shortest)
        share = _SHARE_OF_REFUSED if self.programs else _SHARE_FOR_FIRST
        return self._attempts + cold + begun <= _FREE_CALLS * self._shortest + share * calls + self._saved

    @contextmanager
    def as_plain(self) -> Iterator[None]:
        """A context for a call that is hardly slower than a plain one: it tells how long such take."""
        before = thread_time()
        yield
        self._shortest = min(self._shortest, thread_time() - before)

    @contextmanager
    def counted(self, is_in_parts: bool = False) -> Iterator[None]:
        """A context for a call: what it takes is counted. The processor's time is, so that others do not matter."""
        self.was_attempted = False
        before = self._began = thread_time()
        try:
            yield
        finally:
            took, self._began = thread_time() - before, None
            if self.is_invested:
                self.is_invested = False
            elif not self.was_attempted:
                self._shortest = min(self._shortest, took)
                self._calls += took
                self._saved += self.gain * is_in_parts
            elif self._shortest is math.inf:
                self._cold += took
            else:
                self._attempts += max(0.0, took - self._shortest)
                self._calls += min(took, self._shortest)


class Contest:
    """Finds out whether the programs of a function are quicker than eager calls: tiny ones have less to do than guards.

    If they are not, calls run eagerly for a while. Then it begins anew, for later calls may have more to do.
    """

    def __init__(self) -> None:
        self.begins_at = _CALLS_BEFORE
        """After so many calls by programs some are timed."""
        self.is_on = False
        """Whether calls are timed now, or run eagerly."""
        self.verdict: str | None = None
        """Why calls run eagerly now; None: they do not."""
        self.left = 0
        """So many calls are still to run eagerly."""
        self._rest = _REST
        self._by_program: list[float] = []
        self._eager: list[float] = []

    def is_eager_next(self) -> bool:
        """Whether the next call that is timed runs eagerly."""
        return len(self._eager) < len(self._by_program)

    def note(self, is_eager: bool, seconds: float, calls: int) -> None:
        """Take note of how long a call took, the last of so many by programs."""
        (self._eager if is_eager else self._by_program).append(seconds)
        if len(self._eager) < _TIMED_PAIRS:
            return
        took, eager = 1e6 * min(self._by_program), 1e6 * min(self._eager)
        self._by_program, self._eager = [], []
        if took > _SLOWER * eager:
            self.verdict = f"a program takes {took:.3g} us, an eager call {eager:.3g} us: calls run eagerly"
            self.left, self._rest = self._rest, 2 * self._rest
        else:
            self.is_on, self.begins_at = False, calls + self._rest

    def end_of_rest(self, calls: int) -> None:
        """Let programs run again, to be timed anew."""
        self.verdict, self.is_on, self.begins_at = None, False, calls + _CALLS_BEFORE


class Trial:
    """Finds out whether calls in parts are quicker than eager ones."""

    def __init__(self) -> None:
        self._quiet = 0
        self._in_parts: list[float] = []
        self._eager: list[float] = []
        self._by_processor: dict[bool, float] = {}
        """The least time of the processor that calls in parts have taken, and eager ones."""
        self._rests = False
        """Whether calls run eagerly until there is time for further attempts."""

    def run(self, effort: Effort, call: Attempt, in_parts: Callable[..., Any]) -> Any:
        """Make a call, in parts or eagerly, whichever is due."""
        if self._rests and effort.has_time():
            self._begin()
        lacks_time = not effort.has_time()
        is_waiting = lacks_time and not effort.programs  # there is nothing yet that could be quicker
        is_timed = not is_waiting and self._quiet >= _QUIET_CALLS and len(self._eager) < _TIMED_CALLS
        is_waiting |= lacks_time and effort.gain <= 0 and not is_timed  # nor is anything known to be
        is_eager = self._rests or (is_timed and len(self._eager) < len(self._in_parts))
        begin, before = perf_counter(), thread_time()
        with effort.counted(is_in_parts=not (is_eager or is_waiting)):
            result = call.run_plainly() if is_eager or is_waiting else call.run_as(in_parts)
        if effort.was_attempted:
            self._begin()
        elif is_timed:
            (self._eager if is_eager else self._in_parts).append(perf_counter() - begin)
            known = self._by_processor
            known[is_eager] = min(known.get(is_eager, math.inf), thread_time() - before)
            if len(self._eager) == _TIMED_CALLS:
                effort.gain = max(0.0, known[True] - known[False])
        else:
            self._quiet += 1
        return result

    def _begin(self) -> None:
        """Time calls anew: there may be other programs."""
        self._quiet, self._rests = 0, False
        self._in_parts.clear()
        self._eager.clear()
        self._by_processor.clear()

    def verdict(self, effort: Effort) -> str | None:
        """Why calls are to run eagerly for ever; None: parts are no slower, or it is not known yet."""
        if len(self._eager) < _TIMED_CALLS or min(self._in_parts) <= _SLOWER * min(self._eager):
            return None
        if effort.lacks_time:
            effort.lacks_time, self._rests = False, True
        if self._rests:
            return None
        took, eager = [1e3 * min(each) for each in (self._in_parts, self._eager)]
        return (
            f"in parts, between its graph breaks, a call takes {took:.3g} ms, eagerly {eager:.3g} ms: it is run eagerly"
        )
