"""Functions that are exchanged for the time of a trace, and those that are not traced through.

An exchange is seen by all threads, so one thread traces at a time; to the others what is exchanged does what it always
does: methods ask which thread calls, functions whether they are given proxies.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .._core.process.locks import new_reentrant_lock
from ._tracing_state import is_fx_tracing
from .node import map_aggregate
from .proxy import Proxy

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
"""Global scopes, by identity and the name in them of a function that is recorded as one call."""
_wrapped_methods_to_patch: list[tuple[type, str]] = []
"""Methods that are recorded as one call."""

_ABSENT: Any = object()


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """A proxy among the arguments, if there is one."""
    found: list[Proxy] = []

    def look(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(objects_to_search, look)
    return found[-1] if found else None


def recorded_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes one node when it is called with proxies."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def recorded_method(cls: type, name: str) -> Callable[..., Any]:
    """A method that becomes one node when it is called with proxies."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _Patch(NamedTuple):
    """One exchange: in a global scope or in a class, and what stood there before."""

    place: Any
    name: str
    before: Any
    now: Any

    def apply(self) -> None:
        self._put(self.now)

    def revert(self) -> None:
        self._put(self.before)

    def _put(self, value: Any) -> None:
        if isinstance(self.place, type):
            setattr(self.place, self.name, value)
        elif value is _ABSENT:
            del self.place[self.name]
        else:
            self.place[self.name] = value


class _Patcher:
    """The exchanges of one trace."""

    def __init__(self) -> None:
        self.patches_made: list[_Patch] = []
        self.visited: set[int] = set()

    def _add(self, patch: _Patch) -> None:
        self.patches_made.append(patch)
        patch.apply()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Put a function in the place of one in a global scope; with `deduplicate`, only once."""
        new_fn.__fx_already_patched = deduplicate
        if name not in frame_dict and hasattr(builtins, name):
            self._add(_Patch(frame_dict, name, _ABSENT, new_fn))
        elif not getattr(frame_dict[name], "__fx_already_patched", False):
            self._add(_Patch(frame_dict, name, frame_dict[name], new_fn))

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Put a method in the place of one of a class."""
        new_fn.__fx_already_patched = deduplicate
        before = getattr(cls, name)
        if not getattr(before, "__fx_already_patched", False):
            self._add(_Patch(cls, name, before, new_fn))

    def visit_once(self, thing: Any) -> bool:
        """Whether a scope has not been looked at before."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def revert_all_patches(self) -> None:
        """Put everything back."""
        for patch in reversed(self.patches_made):
            patch.revert()

    def reapply_all_patches(self) -> None:
        """Make the exchanges again."""
        for patch in self.patches_made:
            patch.apply()

    def patch_wrapped_functions(self) -> None:
        """Exchange what programs have marked by `wrap`."""
        for (_, name), scope in list(_wrapped_fns_to_patch.items()):
            found = scope[name] if name in scope else getattr(builtins, name)
            self.patch(scope, name, recorded_whole(found))
        for cls, name in _wrapped_methods_to_patch:
            self.patch_method(cls, name, recorded_method(cls, name))

    def autowrap(self, scope: dict[str, Any], function_ids: set[int]) -> None:
        """Exchange the functions of a scope that are never traced through, such as those of `math`."""
        if not self.visit_once(scope):
            return
        for name, value in list(scope.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                self.patch(scope, name, recorded_whole(value))


_CURRENT: list[_Patcher] = []
_ONE_THREAD = new_reentrant_lock()


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """The exchanges of a trace, which end with it."""
    with _ONE_THREAD:
        patcher = _Patcher()
        _CURRENT.append(patcher)
        try:
            yield patcher
        finally:
            patcher.revert_all_patches()
            _CURRENT.pop()


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """A context, inside of a trace, in which everything is as usual."""
    if not is_fx_tracing() or not _CURRENT:
        yield
        return
    patcher = _CURRENT[-1]
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()


def wrap(fn_or_name: Any) -> Any:
    """Mark a function of the calling module, itself or by its name, as one that is recorded as one call.

    To be called at the top level of the module, as a decorator or plainly.

    Args:
        fn_or_name: the function, or its name.

    Returns:
        what it was given.

    Example:
        >>> def scale(x):
        ...     return 2 * x
        >>> torch.fx.wrap(scale) is scale
        True
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


wrap.__module__ = "flambeau.fx._symbolic_trace"
