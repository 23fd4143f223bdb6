"""PyTorch's functions and classes that are written in Python, beside Flambeau's: their signatures."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch as pytorch
import torch.overrides

import flambeau
from flambeau._core.names.names_only import below

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def modules() -> Iterator[tuple[str, Any, Any]]:
    """The public modules that both have: name, PyTorch's, Flambeau's."""
    yield "", pytorch, flambeau
    with_files = [info.name for info in pkgutil.walk_packages(flambeau.__path__, "flambeau.")]
    for full in sorted({*with_files, *below("flambeau")}):
        name = full.removeprefix("flambeau.")
        if any(part.startswith("_") for part in name.split(".")):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = importlib.import_module(f"torch.{name}")
        except ImportError:
            continue
        yield name, theirs, importlib.import_module(full)


def _counterpart(ours: Any, name: str) -> Any:
    """What Flambeau has under a name; `torch.classes` refuses any that somebody has once asked PyTorch's for."""
    try:
        return getattr(ours, name, None)
    except RuntimeError:
        return None


def pairs() -> Iterator[tuple[str, Any, Any, bool]]:
    """Every public function, class and method that both libraries have, each once: path, PyTorch's, Flambeau's, and
    whether it is a method.
    """
    seen: set[tuple[int, int]] = set()
    for module, theirs, ours in modules():
        for name in sorted(dir(theirs)):
            value, counterpart = getattr(theirs, name), _counterpart(ours, name)
            if name.startswith("_") or not callable(value) or not callable(counterpart) or not _belongs(value):
                continue
            if (id(value), id(counterpart)) in seen:
                continue
            seen.add((id(value), id(counterpart)))
            path = f"{module}.{name}" if module else name
            yield path, value, counterpart, False
            if inspect.isclass(value) and inspect.isclass(counterpart):
                yield from _methods(path, value, counterpart)


def _methods(path: str, theirs: type, ours: type) -> Iterator[tuple[str, Any, Any, bool]]:
    for name, value in sorted(vars(theirs).items()):
        if name.startswith("_") or isinstance(value, property) or inspect.isclass(value):
            continue
        bound = not isinstance(value, staticmethod)
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        counterpart = inspect.getattr_static(ours, name, None)
        if isinstance(counterpart, (classmethod, staticmethod)):
            counterpart = counterpart.__func__
        elif counterpart is not None and not callable(counterpart):
            counterpart = getattr(ours, name)
        if callable(value) and callable(counterpart):
            yield f"{path}.{name}", value, counterpart, bound


def _belongs(value: Any) -> bool:
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and home.split(".")[0] == "torch"


def parameters(value: Any, method: bool, documented: dict[Any, Callable[..., Any]]) -> list[inspect.Parameter] | None:
    """What a function or class takes, without `self`; None for what is written in C++ or takes anything whatever.

    `documented` is PyTorch's own list of functions that may be overridden, with signatures for those that are
    dispatched by the value of an argument.
    """
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return None
    if inspect.isclass(value):
        if issubclass(value, (enum.Enum, tuple, BaseException)):
            return None
        value, method = value.__init__ if value.__init__ is not object.__init__ else value.__new__, True
        if not isinstance(value, types.FunctionType):
            return None
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    if all(each.kind in _MANY for each in found[method:]) and len(found[method:]) == 2:
        value = documented.get(value)
        return None if value is None else list(inspect.signature(value).parameters.values())
    return found[method:]


def compare(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """The differences, as path and what differs; `counts` says how much was compared."""
    documented = torch.overrides.get_testing_overrides()
    for path, theirs, ours, method in pairs():
        expected = parameters(theirs, method, documented)
        if expected is None:
            continue
        found = parameters(ours, method, {})
        counts["classes and functions written in Python" if not method else "methods written in Python"] += 1
        if found is not None:
            counts["parameters of those"] += len(expected)
            yield from ((path, each) for each in _differences(expected, found))


def _differences(expected: list[inspect.Parameter], ours: list[inspect.Parameter]) -> Iterator[str]:
    """What a caller of PyTorch's function would notice."""
    found = {each.name: each for each in ours}
    many = {each.kind for each in ours if each.kind in _MANY}
    positions = [each.name for each in ours if each.kind in _POSITIONAL]
    for position, each in enumerate(expected):
        if each.kind in _MANY:
            if each.kind not in many:
                yield f"{str(each).partition(':')[0]} is not taken"
            continue
        mine = found.get(each.name)
        if mine is None or mine.kind in _MANY:
            yield (
                f"{each.name}= is not taken" if inspect.Parameter.VAR_KEYWORD not in many else f"{each.name} is hidden"
            )
            continue
        if each.kind in _POSITIONAL and positions[position : position + 1] != [each.name]:
            yield f"{each.name} is not at position {position}"
        if (each.default is each.empty) != (mine.default is mine.empty):
            yield f"{each.name} is {'required' if mine.default is mine.empty else 'optional'}"
        elif _described(each.default) != _described(mine.default):
            yield f"{each.name} is {_described(mine.default)} by default, not {_described(each.default)}"
    names = {each.name for each in expected}
    for each in ours:
        if each.kind not in _MANY and each.default is each.empty and each.name not in names:
            yield f"{each.name} is required"


def _described(value: Any) -> str:
    """A default in words that are the same for both libraries."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_described(each) for each in value)})"
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value)
    if inspect.isclass(value) or isinstance(value, types.FunctionType):
        return str(value.__name__)
    text = str(value).replace("flambeau", "torch")
    return text if " at 0x" not in text else type(value).__name__
