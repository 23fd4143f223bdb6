"""Functions that are not written in Python: what is known of them by their names and of whom they are."""

from __future__ import annotations

import sys
from typing import Any

REFUSED_BUILTINS = frozenset(
    ("__import__", "breakpoint", "compile", "eval", "exec", "globals", "id", "input", "locals", "open", "print", "vars")
)
_PURE_MODULES = frozenset(("builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_abc"))
_HARMLESS = frozenset(("sys.getrecursionlimit",))
"""Functions of other modules that find what nothing depends on but whether Python goes on; `inspect` asks for it."""
_LOCAL_TYPES = (str, bytes, int, float, complex, tuple, list, dict, set, frozenset, range, slice)
"""Types whose methods touch nothing but the object, which is compared, and their arguments."""
_UNSTEADY_OF_CLASSES = frozenset(("__subclasses__", "now", "today", "utcnow"))
"""Functions of classes that find something else from call to call: clocks, and who has derived from a class."""
_NOTICED = frozenset(("breakpoint", "input", "open", "print"))
_NOTICED_MODULES = frozenset(
    ("_io", "_posixsubprocess", "_random", "_socket", "_warnings", "datetime", "io", "random", "time", "numpy.random")
)
"""Modules of Python's, and of NumPy's, whose functions change what others see, or that go on by themselves."""


def is_harmless(function: Any) -> bool:
    """Whether a function that is not written in Python touches nothing but its arguments and what is compared."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):
        return _is_harmless_of_class(function, owner)
    if owner is not None and type(owner) is not type(sys):
        return isinstance(owner, _LOCAL_TYPES) or _is_plain_object_method(function, owner)
    name, module = getattr(function, "__name__", "?"), getattr(function, "__module__", None)
    if module == "builtins":
        return name not in REFUSED_BUILTINS
    return module is None or module in _PURE_MODULES or f"{module}.{name}" in _HARMLESS


def has_effects(function: Any) -> bool:
    """Whether somebody may notice that a function ran which is not harmless; those of unknown libraries count."""
    owner = getattr(function, "__self__", None)
    if owner is None or type(owner) is type(sys):
        module = getattr(function, "__module__", None) or "builtins"
    else:
        module = _home(function, owner if isinstance(owner, type) else type(owner)).__module__
    if module == "builtins":
        return getattr(function, "__name__", "?") in _NOTICED
    if module in _NOTICED_MODULES or module.startswith("numpy.random."):
        return True
    package = module.partition(".")[0]
    return package != "numpy" and package not in sys.stdlib_module_names


def _is_harmless_of_class(function: Any, owner: type) -> bool:
    """Whether a function of a class makes an object of its arguments, or does the like."""
    name = getattr(function, "__name__", "?")
    if name in _UNSTEADY_OF_CLASSES:
        return False
    package = _home(function, owner).__module__.partition(".")[0]
    return name.startswith("__") or package == "numpy" or package in sys.stdlib_module_names


def _home(function: Any, kind: type) -> type:
    """The class that defines a method which was found in another one; of one of all classes, their class."""
    name = getattr(function, "__name__", "?")
    meta = type(kind) if hasattr(type(kind), name) else kind
    return next((each for each in kind.__mro__ if name in vars(each)), meta)


def _is_plain_object_method(function: Any, owner: Any) -> bool:
    """Whether a built-in method is one of every object, of exceptions, or of a container in Python's own library."""
    return type(owner).__module__ in ("builtins", "collections", "_collections_abc", "types") or (
        getattr(object, getattr(function, "__name__", ""), None) is not None
    )
