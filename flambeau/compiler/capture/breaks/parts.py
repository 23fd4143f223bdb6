"""A function that cannot be compiled whole: it runs in parts (`split.py`), each of them compiled by itself."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection
from types import CodeType, FunctionType, MethodType
from typing import Any

from ...._core.process.caller import GENERATED, PACKAGE
from ...._core.slots import SLOTS
from ..._errors import report_fault
from ..._marks import DISABLED
from .split import Definition, definition_of, split

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_PACKAGES = os.path.join(_STANDARD_LIBRARY, "site-packages")
_AROUND_MODULES = frozenset([os.path.join(PACKAGE, "nn", "parallel", "distributed.py")])
"""Files of ours with modules around the user's, which do more than can be compiled."""
_MOST_CALLEES = 64
"""So many different functions and modules are looked at in the statements of one function that stay Python."""


def is_module(value: Any) -> bool:
    """Whether something is a module that is called as all modules are: by way of its hooks."""
    if not hasattr(type(value), "forward") or not hasattr(value, "_forward_hooks"):
        return False
    code = getattr(type(value).__call__, "__code__", None)
    return code is not None and code.co_filename.startswith(PACKAGE)


def _module_behind(function: Any) -> Any:
    """The module that a call of a function is a call of; None: it is not one. `super().__call__` may be one, too."""
    if isinstance(function, MethodType) and function.__name__ == "__call__" and hasattr(function.__self__, "forward"):
        is_ours = function.__func__.__code__.co_filename.startswith(PACKAGE)
        return function.__self__ if is_ours and hasattr(function.__self__, "_forward_hooks") else None
    return function if is_module(function) else None


def code_behind(function: Any) -> CodeType | None:
    """The code that is a function's own: that of a method, or of the `forward` of a module."""
    module = _module_behind(function)
    found = getattr(function if module is None else module.forward, "__code__", None)
    return found if isinstance(found, CodeType) else None


def _is_splittable(code: CodeType) -> bool:
    """Whether code is of the user or of a library of his: what of ours cannot be compiled whole stays as it is."""
    file = code.co_filename
    if code in DISABLED or (file.startswith((GENERATED, PACKAGE, "<")) and file not in _AROUND_MODULES):
        return False
    return file.startswith(_PACKAGES) or not file.startswith(_STANDARD_LIBRARY)


Make = Callable[..., Any]
"""Makes a compiled function of a function and, for a part of another one, its definition."""


class Parts:
    """A function that runs in parts."""

    def __init__(self, function: FunctionType, run: Callable[..., Any], parts: list[Any], callees: Callees) -> None:
        self.run = run
        self._parts, self._callees = parts, callees
        self._function, self._was = function, _signature(function)

    def holds(self, function: Any) -> bool:
        """Whether the function is still the one that was split."""
        return code_behind(function) is self._was[0] and _signature(self._function) == self._was

    @property
    def compiled(self) -> list[Any]:
        """The parts, and what the statements between them call."""
        return [*self._parts, *self._callees.compiled]


def in_parts(function: Any, definition: Definition | None, lines: Collection[int], make: Make) -> Parts | None:
    """A function around the statements at `lines`, or those that change objects, if it has parts that can be told."""
    code = code_behind(function)
    if code is None or not _is_splittable(code):
        return None
    definition = definition or definition_of(code)
    if definition is None:
        return None
    module = _module_behind(function)
    bound = function if module is None else module.forward
    plain = bound.__func__ if isinstance(bound, MethodType) else bound
    if type(plain) is not FunctionType:
        return None
    callees = Callees(make)
    found = split(plain, definition, lines, callees)
    if found is None:
        return None
    run, parts = found
    compiled = []
    for part in parts:
        part.cell.cell_contents = make(part.function, part.definition)
        compiled.append(part.cell.cell_contents)
    again: Callable[..., Any] = run
    if isinstance(bound, MethodType):
        again = functools.partial(run, bound.__self__)
    return Parts(plain, again if module is None else _as_module(module, again), compiled, callees)


def _signature(function: FunctionType) -> tuple[Any, ...]:
    """What is part of a function beside its closure and its globals; defaults by their identity."""
    defaults, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
    return function.__code__, [*map(id, defaults)], {name: id(each) for name, each in by_name.items()}


def _as_module(module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: SLOTS.call_module(module, forward, args, kwargs)


class Callees:
    """What is called in statements that stay Python: functions and modules that come again are compiled."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._failed = False
        self._known: dict[tuple[int, int], tuple[Any, Any]] = {}
        """What was called, which is kept so that its address stays its own; and what it is compiled to."""

    @property
    def compiled(self) -> list[Any]:
        return [made for _, made in self._known.values() if made is not None]

    def __call__(self, callee: Any) -> Any:
        """What to call in place of `callee`."""
        try:
            return callee if self._failed else self._instead(callee)
        except Exception as error:  # the function that calls it is in the midst of its work
            self._failed = True
            report_fault("what a function calls", error)
            return callee

    def _instead(self, callee: Any) -> Any:
        kind = type(callee)
        if kind is FunctionType:
            key = id(callee), 0
        elif kind is MethodType and type(callee.__func__) is FunctionType:
            key = id(callee.__func__), id(callee.__self__)
            if _module_behind(callee) is not None:
                return self._found(key, callee)
        elif is_module(callee):
            return self._found((id(callee), 0), callee)
        elif hasattr(kind, "forward") and hasattr(callee, "_forward_hooks"):  # a module with a call of its own
            return self._instead(callee.__call__)
        else:
            return callee
        return self._found(key, callee) if _is_splittable(callee.__code__) else callee

    def _found(self, key: tuple[int, int], callee: Any) -> Any:
        known = self._known.get(key)
        if known is None:
            if len(self._known) < _MOST_CALLEES:
                self._known[key] = callee, None
            return callee
        if known[1] is None:
            self._known[key] = known = callee, self._make(callee, None)
        return known[1]
