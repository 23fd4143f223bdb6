"""PyTorch's functions and methods that are written in C++, beside Flambeau's."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch as pytorch

import flambeau
from flambeau._dispatch.public import registry

from .binding import Argument, Call, bound, calls, described, numbers_for_tensors
from .overloads import _BY_NAME, SPACES, Overload, overloads

SKIPPED = frozenset({"seed", "manual_seed", "set_num_threads", "__getitem__"})
"""What would change the state of the process, or takes anything whatever."""


def _space(T: Any, space: str) -> Any:
    for part in filter(None, space.split(".")):
        T = getattr(T, part)
    return T


def pairs() -> Iterator[tuple[str, str, Any, Any]]:
    """The functions and methods that both have: namespace, name, PyTorch's, Flambeau's."""
    registry.load_all()
    for space in (*SPACES, "Tensor"):
        theirs, ours = _space(pytorch, space), _space(flambeau, space)
        for name in sorted(dir(theirs)):
            private = name.startswith("_") and not (space == "Tensor" and name.startswith("__"))
            function = getattr(theirs, name)
            if private or name in SKIPPED or isinstance(function, (type, types.FunctionType)) or not callable(function):
                continue
            if hasattr(ours, name):
                yield space, name, function, getattr(ours, name)


def compare(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """The differences, as path and what differs; `counts` says how much was compared."""
    for space, name, theirs, ours in pairs():
        proposed = overloads(space, name)
        if not proposed:
            counts["without a schema"] += 1
            continue
        counts["functions" if space != "Tensor" else "methods"] += 1
        path = f"{space}.{name}" if space else name
        yield from ((path, each) for each in _differences(proposed, theirs, ours, space == "Tensor", counts))


def _differences(proposed: list[Overload], theirs: Any, ours: Any, method: bool, counts: Counter[str]) -> Iterator[str]:
    accepted: list[Call] = []
    tried: set[Call] = set()
    for overload in proposed:
        for call in calls(overload):
            if call in tried:
                continue
            tried.add(call)
            if bound(pytorch, theirs, call, method):
                accepted.append(call)
                counts["calls by keyword and position"] += 1
                if not bound(flambeau, ours, call, method):
                    yield f"refuses {described(call)}"
        for call in numbers_for_tensors(overload):
            if call in tried:
                continue
            tried.add(call)
            counts["calls with numbers for tensors"] += 1
            wanted = bound(pytorch, theirs, call, method)
            if wanted is not bound(flambeau, ours, call, method):
                yield f"{'refuses' if wanted else 'accepts'} {described(call)}"
    if accepted and isinstance(ours, (types.FunctionType, types.MethodType)):
        yield from _parameters(proposed, accepted, theirs, ours, method, counts)


def _parameters(
    proposed: list[Overload], accepted: list[Call], theirs: Any, ours: Any, method: bool, counts: Counter[str]
) -> Iterator[str]:
    """Flambeau's own parameters: names that PyTorch does not take, and other defaults."""
    taken = {argument.name for call in accepted for argument in call}
    defaults: dict[str, list[Any]] = {}
    for overload in proposed:
        for each in overload:
            if not each.required:
                defaults.setdefault(each.name, []).append(each.default)
    everywhere = set.intersection(*({each.name for each in overload} for overload in proposed))
    parameters = list(inspect.signature(ours).parameters.values())
    for parameter in parameters[1:] if method else parameters:
        name = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        counts["parameters"] += 1
        extra = Argument(_BY_NAME.get(name, "tensor" if name == "out" else "bool"), name)
        if name not in taken:
            attempts = [(*call, extra) for call in accepted]
            wanted = any(bound(pytorch, theirs, call, method) for call in attempts)
            if not wanted and any(bound(flambeau, ours, call, method) for call in attempts):
                yield f"takes {name}="
            continue
        known = defaults.get(name, []) if name in everywhere and parameter.default is not parameter.empty else []
        if known and not any(_same(parameter.default, each) for each in known):
            yield f"{name} is {parameter.default!r} by default, not {known[0]!r}"


def _same(ours: Any, theirs: Any) -> bool:
    """Whether two defaults mean the same: a number stands for a tuple of it."""
    if isinstance(theirs, (tuple, list)) and not isinstance(ours, (tuple, list)):
        return all(_same(ours, each) for each in theirs) and bool(theirs)
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return ours == theirs or ours != ours
    return str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]
