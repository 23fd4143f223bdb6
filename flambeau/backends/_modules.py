"""The classes of the modules of `torch.backends`: settings are their properties, and can be frozen."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["ContextProp", "GenericModule", "PropModule", "disable_global_flags", "flags_frozen"]


class _Flags:
    frozen = False


def flags_frozen() -> bool:
    """Whether settings can no longer be set by assignment."""
    return _Flags.frozen


def disable_global_flags() -> None:
    """Refuse assignments of settings from now on: only `flags` of a module changes them, for a block."""
    _Flags.frozen = True


@contextlib.contextmanager
def unfrozen() -> Iterator[None]:
    """A block in which settings can be set."""
    before, _Flags.frozen = _Flags.frozen, False
    try:
        yield
    finally:
        _Flags.frozen = before


class ContextProp:
    """A setting as a property of a module: a function that reads it, and one that sets it."""

    def __init__(self, getter: Callable[[], Any], setter: Any) -> None:
        self.getter = getter
        self.setter = setter

    def __get__(self, obj: Any, objtype: Any) -> Any:
        return self.getter()

    def __set__(self, obj: Any, val: Any) -> None:
        if flags_frozen():
            raise RuntimeError(
                f"not allowed to set {getattr(obj, '__name__', obj)} flags after disable_global_flags; please use "
                "flags() context manager instead"
            )
        self.setter(val)


class PropModule(ModuleType):
    """A module with properties, in front of another one that has the rest."""

    def __init__(self, m: ModuleType, name: str) -> None:
        super().__init__(name)
        self.m = m

    def __getattr__(self, attr: str) -> Any:
        if "m" not in vars(self):
            raise AttributeError(f"module {self.__name__!r} has no attribute {attr!r}")
        return getattr(self.m, attr)


def _general_precision() -> Any:
    return vars(sys.modules["flambeau.backends"])["fp32_precision"]


def _set_general_precision(value: str) -> None:
    vars(sys.modules["flambeau.backends"])["fp32_precision"] = value


class GenericModule(PropModule):
    """The module of what all libraries share."""

    fp32_precision = ContextProp(_general_precision, _set_general_precision)


def check_precision(value: str) -> None:
    """Refuse words that say nothing about float32."""
    if value not in ("none", "ieee", "tf32"):
        raise RuntimeError(f"Unknown precision: {value}")


def settings_class(
    name: str, module: str, settings: str, effect: Callable[[str, Any], None] | None = None, **methods: Any
) -> Any:
    """The class of a module whose `settings` are properties; `effect(name, value)` goes before each assignment.

    What the effect refuses is not assigned. The module becomes an instance of it, and keeps its values where they were.
    """
    values = vars(sys.modules[module])

    def setting(each: str) -> ContextProp:
        def change(value: Any) -> None:
            if effect is not None:
                effect(each, value)
            values[each] = value

        return ContextProp(lambda: values[each], change)

    own = {each: setting(each) for each in settings.split()}
    made: Any = type(
        name, (PropModule,), {"__module__": module, "__doc__": f"The class of {module}.", **own, **methods}
    )
    sys.modules[module].__class__ = made
    values[name] = made
    return made
