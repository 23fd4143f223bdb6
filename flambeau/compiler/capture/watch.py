"""Watching a call: which Python code runs in it, what that may look at, and whether it does what cannot be repeated.

The engine's own code is not watched: it computes from its arguments and from the modes, which are compared by
themselves. Everything else that runs is: the user's functions, libraries, modules and their containers.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib.util import resolve_name
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..._core.process.caller import GENERATED, PACKAGE
from ..._core.process.collector import collector_paused
from .._errors import GraphBreak
from .._marks import BREAKS, DISABLED, FORBIDDEN, TRUSTED, run_inside
from .breaks.harmless import has_effects, is_harmless
from .mutations import Stored
from .names_read import Lines, Path, Reads, global_reads, import_reads, names_constant, names_in, stores_in

_ENGINE_ROOMS = (
    "_core", "_dispatch", "_ops", "_backends", "_codegen", "autograd", "compiler", "amp", "random.py", "_wiring.py",
    "_torch/_subclasses", "_torch/_rare_names.py", "_torch/_tensor.py", "_torch/_utils.py", "_torch/_stand_in",
    "nn/functional", "optim", "func",
    "ops/_backwards.py", "ops/_bodies.py", "ops/_internals.py", "ops/_relatives.py", "ops/prims.py",
    "jit/_language/composed.py", "jit/_language/layers.py", "jit/_language/numbers_of.py", "jit/_language/tensors.py",
)  # fmt: skip
"""Parts of the package whose code depends on nothing but arguments and modes."""

_ENGINE = (
    GENERATED,
    *[os.path.join(PACKAGE, each) for each in _ENGINE_ROOMS],
    os.path.dirname(np.__file__) + os.sep,
)
_BY_ITSELF = (
    "<frozen importlib",
    *[os.path.join(PACKAGE, each) for each in ("_codegen", "_backends/cuda", "ops/_whole.py")],
)
"""Imports, the making of kernels, and what drives a device: whatever they run calls back nothing of the user's. And
operators of the user's own, whose Python runs in every call.
"""

_OPTIMIZERS = os.path.join(PACKAGE, "optim")
_RUN_OUTSIDE = ("step", "zero_grad")
"""What of an optimizer runs as it stands, out of the recorder's sight."""

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_PACKAGES = os.path.join(_STANDARD_LIBRARY, "site-packages")

_WHEN_SOMETHING_GOES = frozenset(
    [
        each
        for kind in (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
        for each in kind.__init__.__code__.co_consts
        if isinstance(each, CodeType)
    ]
)
"""Code by which containers of weak references forget what there is no more."""
_BY_NAME = (getattr, hasattr, setattr, delattr)
_SWITCHES = sys.version_info < (3, 12)
"""Whether `sys.setprofile` is cheap to switch: later versions of Python write code anew each time."""


class Uncompilable(Exception):
    """Why a call cannot be compiled as a whole, in words for the user."""


Place = tuple[CodeType, int]
"""A line of some code."""

Breaks = dict[CodeType, set[int]]
"""Lines of the functions that are in the midst of a call when something happens that speaks against compiling it."""


class Watch:
    """Collects, while it is entered, the watched code that runs in this thread."""

    def __init__(self, expected: Container[CodeType] | None = None, stops: bool = False) -> None:
        self.expected = expected
        """The code that is thought to run; None: nobody knows."""
        self.stops = stops
        """Whether a call ends, by a `GraphBreak`, before it does what others may notice."""
        self.is_surprised = False
        """Whether other code has run."""
        self.is_of_future = False
        """Whether nothing has run yet, and its code is what may run."""
        self.breaks: Breaks = {}
        self.place: Place | None = None
        """Where something happened that speaks against compiling the call."""
        self.codes: dict[CodeType, dict[str, Any]] = {}
        """The code that ran, and the globals that it saw."""
        self._watched: dict[int, CodeType] = {}
        """The code that ran by its identity: finding it by what it consists of takes longer than what it does."""
        self.reason: str | None = None
        self.fault: Exception | None = None
        """What went wrong here; from then on nothing is watched."""
        self._pause: AbstractContextManager[None] | None = None
        self._outside: FrameType | None = None
        """A call of an optimizer, or an import: what happens in it is its own."""
        self._is_engine: dict[str, bool] = {}
        self._ignored: dict[int, CodeType] = {}
        """Code of the engine, which most events are of, by its identity."""
        self.variables: list[ContextVar[Any]] = []
        """The context variables that were looked at or set."""
        self._reads_any_name = False
        self._by_name: set[tuple[CodeType, int]] = set()
        """Where attributes were asked for by `getattr` and its like; how, is looked at if the call may be compiled."""
        self._kept: list[CodeType] = []
        """Code that is known by its identity, which no other may get."""
        self._adders: dict[int, Callable[[int], None]] = {}
        """What notes a line of some code, by its identity."""
        self._lines: dict[CodeType, set[int]] | None = None
        """The lines that ran, where nobody else is told of them, such as a debugger."""
        self._calling: FrameType | None = None
        """Watched code that is in a call of a function which is not written in Python."""
        self.traces = False
        """Whether Python's trace function is this watch's own, and can be switched off for a while."""
        self.is_forbidden = False
        """Whether something ran that must not."""
        self.is_error = False
        """Whether the user wants to be told of a graph break where the call has one."""
        self.is_stopped = False
        self.stored: Stored | None = None
        """What lines that run may have changed; None: nobody asks."""
        self._is_on = True
        """Whether Python tells of calls and returns; it does not while the engine runs, if that tells of its end."""

    def __enter__(self) -> Watch:
        # The collector may run at any moment, and calls back whoever asked it to: that is no part of what is watched.
        self._pause = collector_paused()
        self._pause.__enter__()
        if sys.gettrace() is None:
            self._lines, self.traces = {}, _SWITCHES
            sys.settrace(self._trace)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        assert self._pause is not None
        self._pause.__exit__(None, None, None)

    def stop(self) -> None:
        """Be told of nothing any more."""
        self.is_stopped = True
        sys.setprofile(None)
        if self._lines is not None:
            sys.settrace(None)

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """A context in which nothing is watched: what runs in it is the engine's alone."""
        watching, tracing = sys.getprofile(), sys.gettrace()
        sys.setprofile(None)
        sys.settrace(None)
        try:
            yield
        finally:
            sys.settrace(tracing)
            sys.setprofile(watching)

    @property
    def reads_any_name(self) -> bool:
        """Whether attributes were asked for by names that do not stand in the code."""
        while self._by_name and not self._reads_any_name:
            self._reads_any_name = not names_constant(*self._by_name.pop())
        return self._reads_any_name

    def names(self) -> frozenset[str]:
        """Every name by which the code that ran may look something up: attributes, globals, strings for `getattr`."""
        return frozenset().union(*[names_in(code, self.lines_of(code)) for code in self.codes])

    def lines_of(self, code: CodeType) -> Lines:
        """The lines of code that ran."""
        return None if self._lines is None else frozenset(self._lines.get(code, ()))

    def users_lines(self) -> list[tuple[CodeType, Lines]]:
        """The code that ran and is neither ours nor of Python's own library, with its lines."""
        own = [each for each in self.codes if not (is_standard(each) or each.co_filename.startswith(PACKAGE))]
        return [(each, self.lines_of(each)) for each in own]

    def reads_more_than(self, other: Watch) -> bool:
        """Whether code ran that did not run in another call, or lines of it that read something else."""
        if self.codes.keys() - other.codes.keys() or not self.names() <= other.names():
            return True
        for code in self.codes:
            mine, others = self.lines_of(code), other.lines_of(code)
            if others is not None and (mine is None or not mine <= others):
                if not _is_within(global_reads(code, mine), global_reads(code, others)):
                    return True
                if not {*import_reads(code, mine)} <= {*import_reads(code, others)}:
                    return True
        return False

    def told_of_more(self, other: Watch) -> str:
        """Where code ran that did not run in another call, as the end of a sentence."""
        for code, lines in self.users_lines():
            before = other.lines_of(code) if code in other.codes else frozenset()
            new = [] if lines is None or before is None else sorted(lines - before)
            if new:
                return f" ({code.co_filename}:{new[0]})"
        return ""

    def with_lines_of(self, other: Watch) -> Watch:
        """This watch together with what another one has seen of other calls of the function."""
        self.codes = {**other.codes, **self.codes}
        self._reads_any_name |= other._reads_any_name
        self._by_name |= other._by_name
        if self._lines is not None and other._lines is not None:
            for code, lines in other._lines.items():
                self._lines.setdefault(code, set()).update(lines)
        else:
            self._lines = None
        return self

    def imported(self) -> dict[str, set[Path]]:
        """The modules that code which ran imports by itself, by their names, and what it reads of them."""
        found: dict[str, set[Path]] = {}
        for code, seen in self.codes.items():
            if not is_standard(code):
                for name, level, takes, paths in import_reads(code, self.lines_of(code)):
                    whole = resolve_name("." * level + name, seen.get("__package__")) if level else name
                    found.setdefault(whole, set())
                    found.setdefault(whole if takes else whole.partition(".")[0], set()).update(paths)
        return found

    def is_engine(self, code: CodeType) -> bool:
        """Whether code belongs to the engine."""
        file = code.co_filename
        known = self._is_engine.get(file)
        if known is None:
            known = self._is_engine[file] = file.startswith(_ENGINE)
        return known

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A function is called: be told of its lines, unless it is the engine's. Most calls are the engine's own: while
        it runs, Python tells of no more than the functions that it calls.
        """
        try:
            code = frame.f_code
            if self._outside is not None or self._lines is None:
                return None
            if id(code) in self._ignored:
                return self._on_end_of_engine(frame)
            if self.is_engine(code) or code.co_filename.startswith(_BY_ITSELF):
                return self._in_engine(code, frame)
            if not self._is_on and self._is_used_by_engine(frame):
                return None
            return self._on_lines(code)
        except Exception as error:  # it would be raised in the user's code
            self.fault = error
            self.stop()
            return None

    def _on_lines(self, code: CodeType) -> Any:
        """What is told of the lines of watched code."""
        assert self._lines is not None
        if (add := self._adders.get(id(code))) is None:
            add = self._adders[id(code)] = self._lines.setdefault(code, set()).add
            self._kept.append(code)
        was_on, stores = self._is_on, stores_in(code)
        if not was_on:
            self._switch(True)

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                add(line := frame.f_lineno)
                if self.stored is not None and line in stores:
                    try:
                        self.stored.note(frame, stores[line])
                    except Exception as error:  # it would be raised in the user's code
                        self.fault = error
                        self.stop()
            elif event == "return" and not was_on:
                self._switch(False)
            return on_line

        return on_line

    def _in_engine(self, code: CodeType, frame: FrameType) -> Any:
        """Code of the engine that has not been met yet: what is to be told of its end."""
        file = code.co_filename
        if file.startswith(_OPTIMIZERS):
            self._switch(True)  # which of its functions it is will be noted
        elif file.startswith(_BY_ITSELF):
            if not self._is_on:
                self._outside = frame
                frame.f_trace_lines = False
                return self._on_end_outside
        elif code not in TRUSTED:
            self._ignored[id(code)] = code
            return self._on_end_of_engine(frame)
        return None

    def _is_used_by_engine(self, frame: FrameType) -> bool:
        """Whether code of Python's own library runs, and the engine has called it."""
        caller = frame.f_back
        return _is_library(frame) and caller is not None and id(caller.f_code) not in self._watched

    def _on_end_of_engine(self, frame: FrameType) -> Any:
        """Be told of nothing until a function of the engine returns; what is to be told of its end."""
        if not self._is_on or not _SWITCHES:
            return None
        self._switch(False)
        frame.f_trace_lines = False
        return self._on_end

    def _on_end(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return":
            self._switch(True)
        return self._on_end

    def _on_end_outside(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return" and frame is self._outside:
            self._outside = None
        return self._on_end_outside

    def _switch(self, on: bool) -> None:
        # Set once more within an event, the same function would miss the call that is under way.
        if on is not self._is_on and not self.is_stopped:
            self._is_on = on
            sys.setprofile(self._note if on else None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        try:
            code = frame.f_code
            if id(code) in self._ignored:
                return
            if self._outside is not None:
                if event == "return" and frame is self._outside:
                    self._outside = None
            elif event == "call":
                if code.co_filename.startswith(_OPTIMIZERS):
                    self._outside = frame
                    if code.co_name not in _RUN_OUTSIDE:
                        self._refuse(frame, f"{code.co_name} of an optimizer or a scheduler is called")
                elif code.co_filename.startswith(_BY_ITSELF):
                    self._outside = frame  # what it runs is not part of the call
                elif self.is_engine(code):
                    self._ignored[id(code)] = code
                elif code in TRUSTED:
                    self._outside = frame
                elif id(code) not in self._watched:
                    if code in _WHEN_SOMETHING_GOES:
                        return  # Python itself calls it, whatever runs
                    if self._is_used_by_engine(frame):
                        return
                    self.codes.setdefault(code, frame.f_globals)
                    self._watched[id(code)] = code
                    self.is_surprised |= self.expected is not None and code not in self.expected
                    if "__dict__" in code.co_names and not (_is_ours(frame) or is_standard(code)):
                        self._reads_any_name = True
                    if code in DISABLED:
                        self._refuse(frame, f"{code.co_name} runs, which is not to be compiled", is_noticed=True)
                    if code in FORBIDDEN:
                        self.is_forbidden = True
                        self._refuse(frame, f"Attempt to trace forbidden callable {code.co_name}", is_noticed=True)
            elif id(code) in self._watched:
                if event == "c_call":
                    self._calling = frame
                    if self.reason is None or self.stops:
                        self._check(frame, argument)
                elif frame is self._calling:  # it goes on
                    self._calling = None
        except Exception as error:  # it would be raised in the user's code
            self.fault = error
            self.stop()

    def calls_out_of(self, frame: FrameType) -> bool:
        """Whether a frame is in a call of a function that is not written in Python."""
        return self._calling is frame

    def _check(self, frame: FrameType, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "?")
        if type(owner) is ContextVar:
            self.variables.append(owner)  # what it holds is compared, before and after
        elif name in ("id", "vars") and (_is_ours(frame) or is_standard(frame.f_code)):
            return  # they tell apart objects that are compared, or look for names that stand there
        elif _is_ours(frame) and (name == "globals" or type(owner) is np.ufunc):
            return  # a name that is found when it is first asked for; a look at arrays, by an op where it is recorded
        elif function in _BY_NAME:
            if not (_is_ours(frame) or is_standard(frame.f_code)):
                self._by_name.add((frame.f_code, frame.f_lasti))
        elif not is_harmless(function):
            module = getattr(function, "__module__", None)
            if owner is not None and type(owner) is not type(sys):
                module = type(owner).__name__
            what = f"{name}() is called" if module == "builtins" else f"{module}.{name}() is called"
            self._refuse(frame, what, is_noticed=self.stops and has_effects(function))

    def _refuse(self, frame: FrameType, what: str, is_noticed: bool = False) -> None:
        is_first = self.reason is None
        if is_first or is_noticed:
            self.reason = f"{what} ({frame.f_code.co_filename}:{frame.f_lineno})"
            self.breaks = lines_in(frame)
            self.place = frame.f_code, frame.f_lineno
            self.is_error = BREAKS.are_errors
        if is_noticed and self.stops:
            self.stop()
            raise GraphBreak(str(self.reason))
        if is_first and not self.stops:
            self.stop()  # nothing else can be said of this call


class LineRuns:
    """Tells, while it is entered, whether a line runs in this thread: a watched call costs three times as much."""

    def __init__(self, place: Place) -> None:
        self._code, self._line = place
        self.has_run = False
        self.fault: Exception | None = None
        """What went wrong here: it would be raised in the user's code."""

    def __enter__(self) -> LineRuns:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_event if frame.f_code is self._code else None

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> Any:
        try:
            self._on_line(frame.f_lineno)
        except Exception as error:
            self.fault = error
            sys.settrace(None)
        return self._on_event

    def _on_line(self, line: int) -> None:
        if line == self._line:
            self.has_run = True
            sys.settrace(None)  # all is known


def is_watching() -> bool:
    """Whether a call is being watched in this thread: another one inside it is part of it."""
    owners = [getattr(each, "__self__", None) for each in (sys.getprofile(), sys.gettrace())]
    return any(isinstance(each, (Watch, LineRuns)) for each in owners)


def _is_within(one: Reads, other: Reads) -> bool:
    """Whether all that is read in one place is read in another, too."""
    return all(paths <= other.get(name, frozenset()) for name, paths in one.items())


def lines_in(frame: FrameType | None) -> Breaks:
    """The lines at which functions are that run in a frame, or have called it, up to the compiled one."""
    found: Breaks = {}
    while frame is not None and frame.f_code is not run_inside.__code__:
        found.setdefault(frame.f_code, set()).add(frame.f_lineno)
        frame = frame.f_back
    return found


def frame_that_looks(frame: FrameType, codes: Container[CodeType]) -> FrameType | None:
    """Whose code runs, of some code; None: it has called what runs out of sight, such as the step of an optimizer."""
    while frame.f_code not in codes:
        if frame.f_back is None or frame.f_code.co_filename.startswith((_OPTIMIZERS, *_BY_ITSELF)):
            return None
        frame = frame.f_back
    return frame


def users_frame(frame: FrameType) -> FrameType:
    """The user's frame that has led to one of the package's; this one itself if there is none."""
    found: FrameType | None = frame
    while found is not None and found.f_code.co_filename.startswith(PACKAGE):
        found = None if found.f_code is run_inside.__code__ else found.f_back
    return found or frame


@functools.lru_cache(maxsize=4096)
def reads_all_modules(code: CodeType, names: frozenset[str]) -> bool:
    """Whether code may look something up in `sys.modules`: it asks `sys`, by one of its names, or passes it on."""
    if is_standard(code):
        return False  # it looks for where something was defined
    if not names.isdisjoint([each for each in code.co_consts if type(each) is str]):
        return True
    if names.isdisjoint(code.co_names):
        return False
    found = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "PUSH_NULL", "EXTENDED_ARG")]
    for instruction, following in itertools.zip_longest(found, found[1:]):
        if instruction.argval in names and instruction.opname.startswith(("LOAD_", "IMPORT_")):
            takes_part = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
            if not takes_part or following.argval == "modules":
                return True
    return False


def is_standard(code: CodeType) -> bool:
    """Whether code is of Python's own library."""
    return code.co_filename.startswith(_STANDARD_LIBRARY) and not code.co_filename.startswith(_PACKAGES)


def _is_ours(frame: FrameType) -> bool:
    """Whether the package's own code runs."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def _is_library(frame: FrameType) -> bool:
    """Whether code is of Python's own library, or written for a class of it or of ours, as constructors are."""
    file = frame.f_code.co_filename
    if file == "<string>":
        return str(frame.f_globals.get("__name__")).startswith(("namedtuple_", __name__.partition(".")[0] + "."))
    return file.startswith("<frozen ") or is_standard(frame.f_code)
