"""What tensors are for: parameters with their paths, gradients, states of optimizers. For reports about memory.

Modules and optimizers are found among the living objects by Python's collector; nothing is noted beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from inspect import CO_OPTIMIZED
from types import CodeType
from typing import Any, NamedTuple

from ..process.caller import GENERATED, PACKAGE

PARAMETERS, GRADIENTS, STATES, SAVED, OTHERS = (
    "parameters and buffers", "gradients", "optimizer state", "saved for backward", "other tensors",
)  # fmt: skip


_COPIES_VARIABLES = sys.version_info < (3, 13)


class Owner(NamedTuple):
    """What a tensor is for, and its name."""

    use: str
    text: str


def user_variables() -> Iterator[tuple[str, Any, Any]]:
    """The name and value of each variable of the running functions outside of this package, and its frame."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith((PACKAGE, GENERATED)):
            yield from _variables(frame)
        frame = frame.f_back


def _variables(frame: Any) -> list[tuple[str, Any, Any]]:
    """The name and value of each variable of a frame, and the frame.

    Before Python 3.13 asking for them leaves a copy in the frame of a function, which would keep alive what the
    function deletes afterwards to make room. So the copy is emptied; the variables themselves are elsewhere.
    """
    values = frame.f_locals
    found = [(name, value, frame) for name, value in tuple(values.items())]
    if _COPIES_VARIABLES and frame.f_code.co_flags & CO_OPTIMIZED:
        values.clear()
    return found


def _public_class(module: str, name: str) -> type | None:
    """A class of a public module; None if nobody has imported that."""
    return getattr(sys.modules.get(f"flambeau.{module}"), name, None)


def told_apart(objects: Iterable[Any], *kinds: type) -> list[Any]:
    """The objects of some classes, and all modules and optimizers."""
    others = (_public_class("nn", "Module"), _public_class("optim", "Optimizer"))
    wanted = (*kinds, *[each for each in others if each is not None])
    known: dict[type, bool] = {}
    found = []
    for each in objects:
        kind = type(each)  # not isinstance: foreign objects may answer that with code of their own
        is_wanted = known.get(kind)
        if is_wanted is None:
            is_wanted = known[kind] = issubclass(kind, wanted)
        if is_wanted:
            found.append(each)
    return found


class Modules:
    """The living modules by their paths."""

    def __init__(self, objects: Iterable[Any]) -> None:
        kind = _public_class("nn", "Module")
        modules = [] if kind is None else [each for each in objects if issubclass(type(each), kind)]
        modules = [each for each in modules if "_modules" in vars(each)]
        inner = {id(child) for each in modules for child in vars(each)["_modules"].values()}
        variables: dict[int, str] = {}
        for name, value, _ in user_variables():
            if kind is not None and issubclass(type(value), kind) and name != "self":
                variables.setdefault(id(value), name)
        self.paths: dict[int, str] = {}
        self._by_forward: dict[CodeType, list[Any]] = {}
        for module in modules:
            code = getattr(getattr(type(module), "forward", None), "__code__", None)
            if code is not None:
                self._by_forward.setdefault(code, []).append(module)
        for root in modules:
            if id(root) not in inner:
                self._name(root, variables.get(id(root), type(root).__name__))
        self.modules = modules

    def _name(self, root: Any, name: str) -> None:
        left = [(root, name)]
        while left:
            module, path = left.pop()
            if id(module) not in self.paths:
                self.paths[id(module)] = path
                children = vars(module).get("_modules") or {}
                left += [(each, f"{path}.{key}") for key, each in children.items() if each is not None]

    def of_line(self, code: CodeType) -> str:
        """The module in whose `forward` a line is, for a message."""
        found = self._by_forward.get(code, [])
        if len(found) == 1:
            return f" in {self.paths.get(id(found[0]), type(found[0]).__name__)}"
        return f" in one of {len(found)} {type(found[0]).__name__} modules" if found else ""


def owners(objects: Iterable[Any], modules: Modules) -> dict[int, Owner]:
    """For the ids of tensors what they are for."""
    found: dict[int, Owner] = {}
    names: dict[int, str] = {}
    for module in modules.modules:
        path = modules.paths.get(id(module), type(module).__name__)
        for place, word in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for name, tensor in (vars(module).get(place) or {}).items():
                if tensor is None:
                    continue
                names[id(tensor)] = f"{path}.{name}"
                found[id(tensor)] = Owner(PARAMETERS, f", {word} {path}.{name}")
                grad = getattr(tensor, "_grad", None)
                if grad is not None:
                    found[id(grad)] = Owner(GRADIENTS, f", gradient of {path}.{name}")
    kind = _public_class("optim", "Optimizer")
    for optimizer in [] if kind is None else [each for each in objects if issubclass(type(each), kind)]:
        for parameter, state in tuple(vars(optimizer).get("state", {}).items()):
            if not isinstance(state, dict):
                continue
            name = names.get(id(parameter), "a parameter")
            for key, value in state.items():
                found.setdefault(id(value), Owner(STATES, f", {key!r} of {type(optimizer).__name__} for {name}"))
    return found
