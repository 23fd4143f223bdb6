"""A compiled function: programs of earlier calls, each with the checks under which it is right.

The first call is watched: which Python code runs in it. The ops of the next are recorded, or those of the first one, if
it can be foreseen which code runs. If nothing but ops and known Python happened, the state that the code can reach
becomes a list of checks, the ops a program on arrays, both one function. From then on a call that passes the checks of
a program is that program. Everything else runs as it stands.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from time import perf_counter
from typing import Any

from .._backends.tiers import generated
from .._core.backend import deferring_launches
from .._core.modes import THREAD, Modes
from .._core.process.collector import collector_paused
from .._dispatch.arguments.autocast import own_casts
from .._dispatch.host_read import sizes
from ._errors import (
    ConstraintViolationError,
    ForbiddenCallable,
    GraphBreak,
    TorchDynamoException,
    Unsupported,
    report_fault,
)
from ._logs import log
from ._marks import COMPILED, is_marked_dynamic, run_inside, size_out_of_range
from ._stance import STANCE
from .capture.attempt import Attempt
from .capture.breaks.full_graph import Looks, looked
from .capture.breaks.parts import Parts, code_behind, in_parts
from .capture.breaks.split import Definition
from .capture.effort import Contest, Effort, Trial
from .capture.foresight import foreseen, narrowed
from .capture.guards import MISS, State
from .capture.mutations import Change, Changing, Contents, Stored, in_words, outside_caches, put_back, undone
from .capture.new_objects import Made
from .capture.readings import Readings, Seen, Unsteady
from .capture.recompiles import OTHER_ELEMENTS, Values, why_missed
from .capture.recorder import Recorder
from .capture.settings import settings, what_forbids
from .capture.watch import Breaks, LineRuns, Uncompilable, Watch, is_watching
from .emit.backward import joint_of
from .emit.deferred import Later
from .emit.outline import places_in
from .emit.resume import is_of_generated_code, stopped_at
from .emit.sizes import AllButSizes, Family
from .emit.source import Source
from .emit.write import Recording, built_for_sizes, outlined, places_of, still_holds
from .program.items import Call, Read

_MOST_ATTEMPTS = 4
"""So many calls may be refused; then the function is left alone, and a call costs one comparison more."""

_MOST_PROGRAMS = 8

_MANY_MISSES = 64
"""So many calls of a part without a program, if they are most calls, show that its programs are of no use."""

CHANGES = "it changes Python state"
OTHER_CODE = "other code ran than before"


class Compiled:
    """A function with the programs of its calls."""

    _recorder: type[Recorder] = Recorder
    _replays = True
    """Whether programs make the changes in Python that a call makes."""
    _backend: Any = None
    """What compiles its graphs, as `compile` was told."""
    _guards = True
    """Whether calls run eagerly where the compiler fails."""
    _expects: Refused | None = None
    """Why the function of which this is a part was not compiled whole."""
    _is_part = False
    _is_timed = True
    """Whether attempts have a budget of time, and parts are to be quicker than eager calls."""
    recompile_limit = _MOST_PROGRAMS
    """How many programs it may have."""

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        definition: Definition | None = None,
        dynamic: bool | None = None,
        tunes: bool = False,
    ) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.tunes = tunes
        """Whether ways to do the same are timed while a program is planned."""
        self.dynamic = dynamic
        """Whether sizes are variables: True at once, False never, None after some programs."""
        self._definition = definition
        """The source, if the function is a part of another one."""
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins anew: programs are about the objects that calls have found."""
        return _made_anew, (type(self), self.function, self.fullgraph, self._options())

    def _options(self) -> dict[str, Any]:
        """What else the constructor is told, for a copy."""
        return {"dynamic": self.dynamic, "tunes": self.tunes}

    def forget(self) -> None:
        """Forget all programs and begin anew."""
        self._programs: list[Callable[..., Any]] = []
        """The last one used comes first; some may not be written yet."""
        self._last_used: Callable[..., Any] | None = None
        self.reasons: list[str] = []
        """Why calls could not be compiled, one after the other."""
        self.recompiles: list[str] = []
        """Why calls were recorded though there were programs, one after the other."""
        self.parts: Parts | None = None
        """What runs in its place if it cannot be compiled whole."""
        self._watch: Watch | None = None
        """What a call has read that nothing spoke against: the next one is recorded."""
        self._attempts = 0
        self._is_given_up = False
        """Whether it runs as if it were not compiled, for that is quicker."""
        self._contest = Contest()
        self._is_compared = self._is_timed and not self._is_part and type(self) is Compiled
        """Whether it is enough to time calls: there is no backward part, and no device that works on its own."""
        self._hits = self._misses = 0
        """How many calls were programs, and how many of a part were none though there were programs."""
        self._suspect: tuple[Refused, LineRuns | Changing] | None = None
        """Why the last call could not be compiled, and what tells whether the next one does the same."""
        self._seen: Seen | None = None
        """What the first call found in tensors, if it looked so often that the next one is to be compared with it."""
        self._waiting: Refused | None = None
        """Why calls cannot be compiled, where there was no time yet to look for parts."""
        self._effort, self._trial = Effort(), Trial()
        self._families: list[Family] = []
        self._of_one_size: list[AllButSizes] = []
        """The calls that have programs for their sizes alone: where only sizes differ, the next program is for all."""
        self._readings, self._values = Readings(), Values()

    @property
    def programs(self) -> list[Callable[..., Any]]:
        """The programs of the function."""
        try:
            written = [each.written() if isinstance(each, Later) else each for each in [*self._programs]]
        except Exception as error:
            self._leave_alone(error)
            written = []
        return [each for each in written if each is not None]

    @property
    def all_programs(self) -> list[Callable[..., Any]]:
        """The programs of the function and of its parts."""
        inside = [] if self.parts is None else self.parts.compiled
        return [*self.programs, *[each for part in inside for each in part.all_programs]]

    @property
    def all_reasons(self) -> list[str]:
        """Why calls of the function and of its parts could not be compiled."""
        inside = [] if self.parts is None else self.parts.compiled
        return [*self.reasons, *[each for part in inside for each in part.all_reasons]]

    @property
    def slower(self) -> str | None:
        """Why calls run eagerly though there are programs; None: they do not."""
        return self._contest.verdict

    @property
    def sizes_waiting(self) -> int:
        """How many sizes run eagerly, for they have not come often enough to be recorded; parts included."""
        inside: list[Compiled] = [] if self.parts is None else self.parts.compiled
        waiting = frozenset().union(*[each.waiting for each in self._families])
        own = waiting.difference(*[each.table for each in self._families])
        return len(own) + sum([part.sizes_waiting for part in inside])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        modes = THREAD.modes
        if modes.plain or self._is_compiled_in(modes):
            if STANCE.restricts:
                return self._by_what_there_is(args, kwargs)
            if self._contest.is_on and (result := self._compared(args, kwargs)) is not MISS:
                return result
            for program in self._programs:
                try:
                    result = program(args, kwargs)
                except Exception as error:
                    result = self._rescued(error, args, kwargs)
                if result is not MISS:
                    self._hits = hits = self._hits + 1
                    if hits == self._contest.begins_at:
                        self._contest.is_on = self._is_compared
                    if program is not self._last_used:  # the next call may be another one of the same loop
                        self._last_used = program
                        self._programs[:] = sorted(self._programs, key=functools.partial(operator.is_not, program))
                        for each in self._families:
                            each.table.asked = None  # the sizes of this call, which has had a program
                    return result
            if (parts := self._parts_as_they_are()) is not None:
                if self._is_part or not self._is_timed:
                    return run_inside(parts.run, args, kwargs)
                return self._guarded(Attempt(self.function, args, kwargs), self._timed)
            if self._attempts < _MOST_ATTEMPTS:
                return self._guarded(Attempt(self.function, args, kwargs), self._new_call)
        return self.function(*args, **kwargs) if self._is_given_up else run_inside(self.function, args, kwargs)

    def _of_programs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the program that a call is for; MISS: there is none."""
        for program in self._programs:
            try:
                result = program(args, kwargs)
            except Exception as error:
                result = self._rescued(error, args, kwargs)
            if result is not MISS:
                return result
        return MISS

    def _compared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call while it is found out whether programs are quicker than eager calls, and after it if they are not."""
        contest = self._contest
        if contest.left:
            contest.left -= 1
            return run_inside(self.function, args, kwargs)
        is_eager = is_timed = False
        try:
            if contest.verdict is None:
                is_eager, is_timed = contest.is_eager_next(), True
            else:
                contest.end_of_rest(self._hits)
        except Exception as error:
            self._leave_alone(error)
        if not is_timed:
            return MISS
        begin = perf_counter()
        result = run_inside(self.function, args, kwargs) if is_eager else self._of_programs(args, kwargs)
        if result is not MISS:
            try:
                contest.note(is_eager, perf_counter() - begin, self._hits)
            except Exception as error:
                self._leave_alone(error)
        return result

    def _is_compiled_in(self, modes: Modes) -> bool:
        """Whether calls are compiled in such modes; the reason why not is kept once."""
        try:
            reason = what_forbids(modes)
            self._note_once(reason)
        except Exception as error:
            self._leave_alone(error)
            return False
        return reason is None

    def _takes_more(self) -> bool:
        """Whether a call without a program may get one."""
        watcher = sys.getprofile()
        if len(self._programs) >= self.recompile_limit:
            self._note_once(f"it has {self.recompile_limit} programs, which is the most")
        elif is_watching():
            return False
        elif watcher is not None:
            self._note_once("a profiler is set (sys.setprofile), in whose place the compiler would have to be")
        return len(self._programs) < self.recompile_limit and watcher is None

    def _misses_mostly(self) -> bool:
        """Count a call that is none of those that there are programs for. If most are none, programs are in the way."""
        self._misses += 1
        if self._misses < _MANY_MISSES or self._misses < self._hits:
            return False
        self._programs.clear()
        self._attempts = _MOST_ATTEMPTS
        self._note(f"only {self._hits} of {self._hits + self._misses} calls are those that its programs are for")
        return True

    def _timed(self, attempt: Attempt) -> Any:
        """A call in parts, or an eager one that is compared with them: parts that are slower are given up."""
        assert self.parts is not None
        result = self._trial.run(self._effort, attempt, self.parts.run)
        if (reason := self._trial.verdict(self._effort)) is not None:
            self.parts, self._attempts, self._is_given_up = None, _MOST_ATTEMPTS, True
            self._note(reason)
        return result

    def _note_once(self, reason: str | None) -> None:
        if reason and reason not in self.reasons:
            self._note(reason)

    def _note(self, reason: str) -> None:
        """Keep a reason for which a call is not compiled."""
        self.reasons.append(reason)
        log("graph_breaks", f"Graph break in {self._name()}\nReason: {reason}")

    def _by_what_there_is(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call while nothing new is compiled."""
        if STANCE.name != "force_eager":
            if (result := self._of_programs(args, kwargs)) is not MISS:
                return result
            if STANCE.name == "fail_on_recompile":
                code = code_behind(self.function)
                where = "" if code is None else f": {code.co_name} ({code.co_filename}:{code.co_firstlineno})"
                raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'{where}")
        return self.function(*args, **kwargs)

    def _new_call(self, attempt: Attempt) -> Any:
        """A call without a program: it may get one."""
        if self._is_part and self._programs and self._misses_mostly():
            return attempt.run()
        if self._is_part:
            return self._tried(attempt) if self._takes_more() else attempt.run()
        self._effort.hits = self._hits
        with self._effort.counted():
            return self._tried(attempt) if self._takes_more() else attempt.run()

    def _guarded(self, attempt: Attempt, call: Callable[[Attempt], Any]) -> Any:
        """Make a call; where the compiler fails, the function runs as it stands, if it has not."""
        try:
            return call(attempt)
        except BaseException as error:
            attempt.put_back(not isinstance(error, Exception))
            expected = error is attempt.error or isinstance(error, TorchDynamoException) or not self._guards
            if expected or not isinstance(error, Exception):
                raise
            self._leave_alone(error)
        if isinstance(attempt.error, GraphBreak):
            raise self._unsupported(attempt.error.reason)
        return attempt.run()

    def _parts_as_they_are(self) -> Parts | None:
        """The parts of the function, if it is still the one that was split."""
        try:
            if self.parts is not None and not self.parts.holds(self.function):
                self.forget()
        except Exception as error:
            self._leave_alone(error)
        return self.parts

    def _rescued(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call whose program has failed: of the function itself, or of the rest of the program.

        Where these fail too, their error is the program's own, which the plain call would have raised.
        """
        if isinstance(error, TorchDynamoException) or not self._guards:
            raise error
        stop = stopped_at(error)
        if stop is not None and stop.is_outside:
            raise error
        if stop is not None and stop.is_at_checks and is_of_generated_code(error):
            return MISS  # what a check looks for is no longer there
        if stop is not None and stop.has_begun:
            result = stop.resume()
        else:
            if stop is not None:
                stop.go_back()
            result = run_inside(self.function, args, kwargs)
        self._leave_alone(error)
        return result

    def _leave_alone(self, error: Exception) -> None:
        """Compile this function no more: the compiler has failed."""
        self._programs.clear()
        self.parts, self._attempts = None, _MOST_ATTEMPTS
        self._contest.is_on = False
        self._note(report_fault(self._name(), error))

    def _name(self) -> str:
        code = getattr(getattr(self.function, "forward", self.function), "__code__", None)
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"

    def _tried(self, attempt: Attempt) -> Any:
        if self.dynamic is None and (marked := [*filter(is_marked_dynamic, _leaves((attempt.args, attempt.kwargs)))]):
            self.dynamic = True
            if (wrong := next(filter(None, map(size_out_of_range, marked)), None)) is not None:
                self.dynamic = None
                raise ConstraintViolationError(f"{wrong}\n  in {self._name()}: a size that mark_dynamic has limited")
        if self._waiting is not None:
            return self._run_after_wait(attempt, self._waiting)
        if self._expects is not None and self._watch is None:
            if not self._may_attempt():
                return attempt.run()
            expected, self._expects = self._expects, None
            if code_behind(self.function) in expected.breaks:
                self._split(expected)
                if self.parts is not None:
                    return attempt.run_as(self.parts.run)
        suspect, self._suspect, seen, self._seen = self._suspect, None, self._seen, None
        if suspect is not None or seen is not None:
            return self._looked_for(attempt, suspect, seen)
        if self._watch is None:
            return self._first(attempt) if self._may_attempt() else attempt.run()
        asked = [each for each in self._families if each.table.asked is not None]
        waits = [each.waits(bool(self.dynamic)) for each in self._families]  # all: they forget what they were asked for
        overdue = any(each.is_overdue for each in asked)
        if any(waits) or not self._may_attempt(overdue):  # sizes may never come again, as those of a cache that grows
            return attempt.run_plainly() if any(each.grows for each in self._families) else attempt.run()
        if followed := [each for each in asked if each.follows()]:
            self._follow(min(followed, key=Family.distance), attempt)
            return attempt.result
        missed = asked[0].told() if asked else self._why_missed(attempt)
        if missed == OTHER_ELEMENTS and (data := self._readings.of_data()) is not None:
            return self._refuse(self._refused_for(data), attempt)
        if missed is not None and self._values.waits(missed):
            return self._passed_over(attempt, self._values.given_up(missed))
        if missed is not None:
            self.recompiles.append(missed)
            log("recompiles", f"Recompiling {self._name()}\ntriggered by the following guard failure: {missed}")
        try:
            recording = self._recorded(attempt, self._watch, Watch(stops=self.fullgraph))
        except Refused as refused:
            return self._refuse(refused, attempt)
        self._watch = recording.watch.with_lines_of(self._watch)
        return self._kept(attempt, recording)

    def _follow(self, family: Family, attempt: Attempt) -> None:
        """Make a call with new sizes, and compare it with a recorded one."""
        family.follow(attempt)
        self._renew()

    def _renew(self) -> None:
        """Put the programs for all sizes that were planned anew in their places."""
        for family in self._families:
            outdated, family.outdated = family.outdated, None
            if outdated is not None:
                self._programs[:] = [family.program if each is outdated else each for each in self._programs]

    def _kept(self, attempt: Attempt, recording: Recording) -> Any:
        """Keep the program of a recorded call; its result."""
        try:
            program = self._program_of(recording)
        except Refused as refused:
            return self._refuse(refused, attempt)
        if self._is_part and not any(isinstance(each, Call) for each in recording.recorder.program.items):
            self._attempts = _MOST_ATTEMPTS  # without ops there is nothing to gain
        elif program is not None:
            self._effort.is_invested = not (self._is_part or self._programs or self._effort.was_refused)
            self._effort.programs += self._is_part
            self._programs.append(program)
        return attempt.result

    def _first(self, attempt: Attempt) -> Any:
        """A first call: it is recorded if it can be said before which code it runs, and watched if not."""
        expected = None if self.fullgraph or self._attempts else foreseen(self.function, attempt.args)
        if expected is None:
            return self._watched(attempt)
        now = Watch(expected.codes)
        try:
            recording = self._recorded(attempt, expected, now)
        except Refused as refused:
            if not attempt.has_run:
                return self._watched(attempt)
            return self._after(attempt, now) if refused.may_end else self._refuse(refused, attempt)
        self._watch = now
        return self._kept(attempt, recording)

    def _may_attempt(self, overdue: bool = False) -> bool:
        """Whether there is time to watch or record a call; `fullgraph` has to know what breaks."""
        return self.fullgraph or not self._is_timed or self._effort.allows(overdue)

    def _watched(self, attempt: Attempt) -> Any:
        """Make a call and see what it reads; it is watched no further once something speaks against compiling it."""
        watch = Watch(stops=self.fullgraph)
        looks = Looks(self.function, watch) if self.fullgraph else Seen(watch.codes)
        watch.stored = stored = Stored()
        try:
            with deferring_launches(), looks, watch:
                attempt.run()
        except BaseException as error:
            if not isinstance(attempt.error, GraphBreak):
                raise
            end = self._ended(attempt.error, error, looks, stored, watch.fault)
            self._note_once(end.reason)
            raise (ForbiddenCallable(end.reason) if watch.is_forbidden else self._unsupported(end.reason)) from None
        if looks.fault is not None:
            raise looks.fault
        if isinstance(looks, Looks) and looks.reason is not None and watch.fault is None:
            self._note(looks.reason)  # it was caught
            raise self._unsupported(looks.reason)
        result = self._after(attempt, watch)
        self._seen = looks if isinstance(looks, Seen) and looks.are_many and self._watch is watch else None
        return result

    def _ended(
        self, end: GraphBreak, error: BaseException, looks: Any, kept: Contents | Stored, fault: Exception | None
    ) -> GraphBreak:
        """Put back what a call has changed that ended at a graph break, in which `error` and `fault` were raised."""
        try:
            if isinstance(looks, Looks):
                looks.undo()
            put_back(kept.changes())
        except Exception as failure:
            fault = failure
        if fault is not None or error is not end:
            report_fault(self._name(), fault or RuntimeError(str(error)))
        return end

    def _after(self, attempt: Attempt, watch: Watch) -> Any:
        """Take note of what a watched call has read; its result."""
        if watch.fault is not None:
            raise watch.fault
        if watch.reason is not None:
            refused = Refused(watch.reason, watch.breaks, is_error=watch.is_error)
            if watch.is_forbidden:
                raise ForbiddenCallable(watch.reason)
            if watch.place is not None and not self.fullgraph:
                self._suspect = refused, LineRuns(watch.place)
            return self._refuse(refused, attempt)
        self._watch = watch
        changes = () if watch.stored is None else watch.stored.changes()
        sign, watch.stored = Changing(outside_caches(changes, (attempt.args, attempt.kwargs))), None
        if sign.is_likely and not self.fullgraph:
            self._suspect = Refused(CHANGES + in_words(sign.changes, watch.users_lines())), sign
        return attempt.result

    def _looked_for(
        self, attempt: Attempt, suspect: tuple[Refused, LineRuns | Changing] | None, seen: Seen | None
    ) -> Any:
        """Make a call and see no more than whether it does again what the last one was not compiled for, or finds
        something else in tensors.
        """
        refused, sign = (None, nullcontext()) if suspect is None else suspect
        if isinstance(sign, LineRuns) and sys.gettrace() is not None:
            return self._watched(attempt)
        now = nullcontext() if seen is None or self._watch is None else Seen(self._watch.codes)
        with nullcontext() if self._is_part else self._effort.as_plain(), sign, now:
            attempt.run()
        for each in (sign, now):
            if isinstance(each, (LineRuns, Seen)) and each.fault is not None:
                raise each.fault
        if refused is not None and not isinstance(sign, nullcontext) and sign.has_run:
            refused.is_known = True
        elif isinstance(now, Seen) and seen is not None and (data := now.others(seen)) is not None:
            refused = self._refused_for(data)
        else:
            return attempt.result
        return self._refuse(refused, attempt)

    def _why_missed(self, attempt: Attempt) -> str | None:
        """Why a call is none of those that there are programs for; None: there are none."""
        last_used = next((each for each in self._programs if not isinstance(each, Later)), None)
        if last_used is None:
            return None
        try:
            return why_missed(last_used, attempt.args, attempt.kwargs)
        except Exception as error:
            return f"something that it looked at is no longer there ({type(error).__name__}: {error})"

    def _passed_over(self, attempt: Attempt, given_up: str | None) -> Any:
        """A call that may never come again: it is not recorded, nor is any other if there is a reason."""
        if given_up is not None:
            self._attempts = _MOST_ATTEMPTS
            self._note(given_up)
        return attempt.run()

    def _refuse(self, refused: Refused, attempt: Attempt) -> Any:
        """Take note of a call that was not compiled; its result."""
        self._attempts += 1
        self._note(refused.reason)
        if self.fullgraph and (self._watch is not None or self._attempts > 1):  # a first call may do what is done once
            self._attempts = min(self._attempts, _MOST_ATTEMPTS - 1)  # each call is an error
            raise self._unsupported(refused.reason) from None
        if refused.is_error and not refused.may_end:
            self._attempts, self._suspect = self._attempts - 1, None  # the next call may be in another context
            raise self._unsupported(refused.reason, "error_on_graph_break") from None
        if not (refused.is_of_other_code and self._hits):  # others have programs: a cache is full, and runs other lines
            self._effort.was_refused = True
        if refused.is_known or self.reasons[-2:-1] == [refused.reason]:  # it will not get better
            if self._may_attempt():
                self._settle(refused)
            else:
                self._waiting = refused
        return attempt.run()

    def _settle(self, refused: Refused) -> None:
        """Run in parts from now on if that is possible."""
        self._split(refused)
        if self.parts is None and (refused.is_known or not refused.may_end):
            self._attempts = _MOST_ATTEMPTS

    def _run_after_wait(self, attempt: Attempt, refused: Refused) -> Any:
        """A call after one that was refused: once there is time, it is looked for parts."""
        if not self._may_attempt():
            return attempt.run_plainly()  # as in PyTorch, where nobody asks whether it is compiled but who is recorded
        self._waiting = None
        self._settle(refused)
        return attempt.run() if self.parts is None else attempt.run_as(self.parts.run)

    def _unsupported(self, reason: str, why: str = "torch.compile(fullgraph=True)") -> Exception:
        return Unsupported(f"{why}: {reason}\n  in {self._name()}")

    def _program_of(self, recording: Recording) -> Callable[..., Any] | None:
        items, given = recording.recorder.program.items, recording.recorder.program.inputs
        if recording.joint is not None or not all(each._kind.is_cpu for each in given.values()):
            self._is_compared = False
        for each in items if self.fullgraph else ():
            if isinstance(each, Read) and each.call.op is not sizes:
                raise Refused(looked(each.call.op.name, each.place), each.breaks)
        if (data := self._readings.note(items)) is not None:
            raise self._refused_for(data)
        try:
            with collector_paused():
                return self._program(recording)
        except Uncompilable as refused:
            raise Refused(str(refused)) from None

    def _recorded(self, attempt: Attempt, watched: Watch, now: Watch) -> Recording:
        """Make a call, and write it down; `watched` has seen such a one before, and `now` is to see this one."""
        names = watched.names()
        call = attempt.args, attempt.kwargs
        with_gradients = not names.isdisjoint(("backward", "grad", "zero_grad"))
        made = Made()  # before anything here holds a gradient that the call may forget
        try:
            with collector_paused():
                state = State(watched, with_gradients).of_call(self.function, *call)
        except Uncompilable as refused:
            raise Refused(str(refused)) from None
        if now.expected is not None and not all(each._kind.is_cpu for each, _ in state.tensors.values()):
            raise Refused("it uses a device, whose kernels are compiled while a first call runs")
        known = settings()
        contents, recorder = state.contents(), self._recorder(state, now, self.function, made)
        recorder.looks = Looks(self.function, now) if self.fullgraph else None
        try:
            with now, recorder, own_casts():
                result = attempt.run()
                if (fault := now.fault or recorder.fault or (recorder.looks and recorder.looks.fault)) is not None:
                    raise fault
                if recorder.is_refused:
                    raise self._refused_by(now, recorder)
                with now.looking_away():
                    changes = contents.changes()
                    state.keep_apart([each.container for each in changes])
                    again = not changes or (self._replays and _comes_again(state, changes, *call))
                    if again:
                        left = [result, *[each.after for each in changes]]
                        recorder.returns(result, left)
                        recorder.set_gradients()
                joint = None if now.reason or not again else joint_of(state, recorder, left, now)
        except BaseException as error:
            if not isinstance(attempt.error, GraphBreak):
                raise
            end = self._ended(attempt.error, error, recorder.looks, contents, recorder.fault)
            raise ForbiddenCallable(end.reason) if now.is_forbidden else Refused(end.reason) from None
        reason, breaks = (now.reason, now.breaks) if now.reason else (recorder.reason, recorder.breaks)
        if not again:
            reason = reason or CHANGES + in_words(changes, now.users_lines())
        if reason is None and now.reads_more_than(watched):
            reason = OTHER_CODE + now.told_of_more(watched)
        if reason is None and not all(map(state.has_seen, now.variables)):
            reason = "it uses a context variable that comes from somewhere unknown"
        if reason is None:
            with collector_paused(), undone(changes):
                if state.has_changed_tensors() or not still_holds(state, *call):
                    reason = CHANGES + in_words(changes, now.users_lines())
        if reason is None and settings() != known:
            reason = "it changes settings"
        if reason is None and now.expected is not None:
            given = set() if joint is None else {each.number for each in joint.arriving}
            narrow = None if changes else narrowed(state, recorder, now, self.function, call, given)
            state, reason = (state, OTHER_CODE) if narrow is None else (narrow, None)
        if reason is not None:
            found = Refused(reason, breaks, is_error=now.is_error or recorder.is_error)
            self._watch = now.with_lines_of(watched) if found.is_of_other_code and now.expected is None else now
            if found.is_of_changes and (sign := Changing(changes)).is_likely and not (self._programs or self.fullgraph):
                self._suspect = found, sign
            raise found
        return Recording(state, recorder, joint, call, result, known, now, changes)

    def _refused_by(self, watch: Watch, recorder: Recorder) -> Refused:
        """Why a recorded call is not compiled. The next one is not recorded, if it is known which line to look for."""
        reason, breaks = (watch.reason, watch.breaks) if watch.reason else (recorder.reason, recorder.breaks)
        if watch.is_forbidden:
            raise ForbiddenCallable(watch.reason)
        refused = Refused(reason or OTHER_CODE, breaks, is_error=watch.is_error or recorder.is_error)
        self._watch = watch
        place = next(((code, min(lines)) for code, lines in breaks.items() if code in watch.codes), None)
        if place is not None and not self._programs and not self.fullgraph:
            self._watch, self._suspect = None, (refused, LineRuns(place))
        return refused

    def _program(self, recording: Recording) -> Callable[..., Any] | None:
        """The program of a recorded call; None: one that is there has it now."""
        if self.dynamic or (self.dynamic is None and self._differs_in_sizes(recording)):
            try:
                return built_for_sizes(recording, self._families)
            finally:
                self._renew()
        tuning = generated("choices").tuning if self.tunes and generated("choices") is not None else nullcontext
        source, known = Source(recording.state.constants, places_of(recording.state)), recording.known
        name = self._name()
        with tuning():
            outline = outlined(source, recording.state.lines, recording)

        def write_function() -> Callable[..., Any]:
            self._effort.was_attempted = True  # within a call in parts: this belongs to the attempt
            with tuning():
                made = outline.function()
            log("output_code", f"{name}\n{vars(made)['source']}")
            return made

        return Later(write_function, lambda: settings() == known, places_in(outline.items), self._programs)

    def _differs_in_sizes(self, recording: Recording) -> bool:
        """Whether there is a program already for a call that differs in sizes alone; if not, there will be."""
        kept = AllButSizes(recording.state, recording.known)
        if any(kept.is_as(each) for each in self._of_one_size):
            return True
        self._of_one_size.append(kept)
        return False

    def _split(self, refused: Refused) -> None:
        """Run in parts from now on, if it is known, or can be found, which statements are to blame."""
        code = code_behind(self.function)
        lines = refused.breaks.get(code, set()) if code is not None else set()
        if lines or refused.is_of_changes:
            self.parts = in_parts(self.function, self._definition, lines, functools.partial(self._part, refused))

    def _part(self, refused: Refused, function: Callable[..., Any], definition: Definition | None) -> Compiled:
        """A part of the function, or something that it calls, compiled by itself: in parts, too, if it was in the midst
        of a call when that was refused.
        """
        made = Compiled(function, definition=definition, dynamic=self.dynamic, tunes=self.tunes)
        made._expects, made._is_part, made._effort = refused, True, self._effort
        made.recompile_limit = self.recompile_limit
        return made

    def _refused_for(self, reads: Unsteady) -> Refused:
        """Why a call is not compiled that looks at data; programs that do are forgotten."""
        self._programs[:] = [each for each in self._programs if reads.places.isdisjoint(vars(each)["places"])]
        return Refused(reads.reason, reads.breaks, is_known=True)


class Refused(Exception):
    """A call was not compiled."""

    def __init__(
        self, reason: str, breaks: Breaks | None = None, is_known: bool = False, is_error: bool = False
    ) -> None:
        self.reason, self.breaks, self.is_error = reason, breaks or {}, is_error
        self.is_known = is_known
        """Whether other calls have shown it, too."""

    @property
    def is_of_changes(self) -> bool:
        """Whether the call has changed Python state."""
        return self.reason.startswith(CHANGES)

    @property
    def may_end(self) -> bool:
        """Whether first calls have this reason, and later ones may not: caches are filled, warnings given."""
        return self.is_of_changes or self.is_of_other_code

    @property
    def is_of_other_code(self) -> bool:
        """Whether the call ran code that the one before it did not."""
        return self.reason.startswith(OTHER_CODE)


def _comes_again(state: State, changes: Sequence[Change], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call like the one that made such changes finds what that one found: it may be the next one."""
    with undone([each for each in changes if each.is_given]):
        return still_holds(state, args, kwargs)


def _made_anew(kind: type[Compiled], function: Any, fullgraph: bool, options: dict[str, Any]) -> Compiled:
    """A copy of a compiled function, without its programs."""
    made = kind(function, fullgraph, **options)
    COMPILED.add(made)
    return made


def _leaves(tree: Any) -> list[Any]:
    if type(tree) is list or isinstance(tree, tuple):
        return [leaf for each in tree for leaf in _leaves(each)]
    if type(tree) is dict:
        return [leaf for each in tree.values() for leaf in _leaves(each)]
    return [tree]
