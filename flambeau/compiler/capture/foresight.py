"""Which code a first call may run: that of the function, of the modules that it holds, and of what these call by name.

A call can be recorded only if it is known before what it may read, and that follows from the code that runs in it. In
general a watched call shows which code that is. Small functions and modules of plain layers show it by themselves, and
are recorded in their first call. Where other code runs, that call counts as a watched one.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..._core.process.caller import PACKAGE
from ..._core.tensor import Tensor
from .._marks import DISABLED, TRUSTED
from ..program.items import Outside, SetGrad
from .breaks.harmless import REFUSED_BUILTINS
from .breaks.parts import is_module
from .guards import State
from .names_read import counts, global_reads, names_in
from .recorder import Recorder
from .watch import Uncompilable, Watch, is_standard

_MOST_CODES = 64
"""A call that may run more is watched: to look at all that it might read takes longer than that."""
_MOST_MODULES = 256
_ALWAYS = frozenset(("__call__", "__getattr__", "__getattribute__", "__getitem__", "__iter__", "__len__", "forward"))
"""Methods that run without their names in the code."""
_OF_BACKWARD = frozenset(("backward", "grad", "zero_grad"))
_UNSAID = frozenset(("__dict__", *REFUSED_BUILTINS))
"""Names in code that reads more than it names, or may well be refused."""
_HEAP_TYPE = 1 << 9


class _TooMuch(Exception):
    """Raised where nobody can say what code may run."""


class _Foresight:
    """The code that calls may run, found step by step: further code has further names."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self.codes = watch, watch.codes
        self._names: set[str] = set(_ALWAYS)
        self._modules: dict[int, Any] = {}
        self._classes: dict[type, None] = {}

    def of(self, function: Any, given: Iterable[Any] = ()) -> None:
        """Find all code that a call of `function` may run which is given such arguments."""
        self._add(function)
        for each in given:
            self._add(each)
        before = -1
        while before < len(self.codes) + len(self._modules):
            before = len(self.codes) + len(self._modules)
            for module in list(self._modules.values()):
                for name in self._names & vars(module).keys():
                    found = vars(module)[name]
                    self._add(found)
                    if isinstance(vars(type(found)).get("__getattribute__"), FunctionType):
                        self._classes[type(found)] = None  # it runs without its name, as soon as anything is asked for
            for kind in list(self._classes):
                self._look_into(kind)
        if not self._names.isdisjoint(_OF_BACKWARD):
            raise _TooMuch  # what is seen after the call are other gradients

    def _add(self, value: Any) -> None:
        if isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, MethodType):
            self._add(value.__func__)
            self._add(value.__self__)
        elif is_module(value) and id(value) not in self._modules:
            self._modules[id(value)] = value
            self._classes[type(value)] = None
            if len(self._modules) > _MOST_MODULES:
                raise _TooMuch
            for each in value._modules.values():
                self._add(each)

    def _add_function(self, function: FunctionType) -> None:
        code = function.__code__
        if code in self.codes or self._watch.is_engine(code) or is_standard(code):
            return
        if code in DISABLED or code in TRUSTED:
            raise _TooMuch
        self._add_code(code, function.__globals__)
        for cell in function.__closure__ or ():
            self._add(cell.cell_contents)
        if not code.co_filename.startswith(PACKAGE):  # ours calls methods of its modules, and what ops consist of
            for name in self._names & function.__globals__.keys():
                self._add(function.__globals__[name])

    def _add_code(self, code: CodeType, names: dict[str, Any]) -> None:
        self.codes[code] = names
        self._names |= names_in(code, None)
        is_ours = code.co_filename.startswith(PACKAGE)
        if len(self.codes) > _MOST_CODES or not (is_ours or _UNSAID.isdisjoint(code.co_names)):
            raise _TooMuch
        if counts(code) and not is_ours:
            raise _TooMuch  # to watch a call takes less time than to record one that changes Python state
        for each in code.co_consts:
            if isinstance(each, CodeType):
                self._add_code(each, names)

    def _look_into(self, kind: type) -> None:
        for each in kind.__mro__:
            if each.__flags__ & _HEAP_TYPE and not issubclass(each, Tensor):
                for name in self._names & each.__dict__.keys():
                    found = each.__dict__[name]
                    self._add(getattr(found, "fget", getattr(found, "__func__", found)))


def foreseen(function: Any, given: Iterable[Any] = ()) -> Watch | None:
    """A watch that has seen all code which a call of a function may run that is given such arguments; None: it cannot
    be said what that is.
    """
    watch = Watch()
    watch.is_of_future = True
    try:
        _Foresight(watch).of(function, given)
    except (_TooMuch, ValueError):  # the second: a variable of a closure has no value yet
        return None
    for code, names in watch.codes.items():
        _load_parts(code, names)
    return watch


def _load_parts(code: CodeType, names: dict[str, Any]) -> None:
    """Load what code takes of this package's modules: to be asked for the first time changes them."""
    for name, paths in global_reads(code, None).items():
        module = names.get(name)
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] == __name__.partition(".")[0]:
            for path in paths:
                if path and path[0] not in module.__dict__:
                    getattr(module, path[0], None)


def narrowed(state: State, recorder: Recorder, watch: Watch, function: Any, call: Any, given: set[int]) -> State | None:
    """What a recorded call depends on, by the lines that ran in it; `state` is that by all lines which might have run.

    The call has changed nothing that `state` checks, so what is found after it was there before it. None: more would
    have to be known. `given`: the numbers of inputs that are no part of the call.
    """
    if watch.reads_any_name or state.checks_offsets:
        return None
    if any(isinstance(each, (Outside, SetGrad)) for each in recorder.program.items):
        return None
    try:
        found = State(watch, False).of_call(function, *call)
    except Uncompilable:
        return None
    used = [id(each._array) for number, each in recorder.program.inputs.items() if number not in given]
    if not found.tensors.keys() <= state.tensors.keys() or not all(each in found.tensors for each in used):
        return None
    return found
