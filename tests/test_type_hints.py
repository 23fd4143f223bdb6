"""`typing.get_type_hints` understands everything public: libraries ask it for the types of arguments."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau._dispatch.public import registry


def public_modules() -> Iterator[Any]:
    yield flambeau
    for info in pkgutil.walk_packages(flambeau.__path__, "flambeau."):
        takes_over = info.name == "flambeau.as_torch"  # importing it puts the package in PyTorch's place
        if not takes_over and not any(part.startswith("_") for part in info.name.split(".")):
            with contextlib.suppress(ModuleNotFoundError):  # a package that names what is not here yet
                yield importlib.import_module(info.name)


def annotated() -> Iterator[tuple[str, Any]]:
    """Every public function and class, and the methods of the classes."""
    registry.load_all()
    for module in public_modules():
        for name in sorted(dir(module)):
            try:
                value = getattr(module, name)
            except ModuleNotFoundError:  # the name of a package to come
                continue
            path = f"{module.__name__}.{name}"
            if name.startswith("_"):
                continue
            if isinstance(value, (types.FunctionType, types.MethodType)):
                yield path, value
            elif inspect.isclass(value) and value.__module__.startswith("flambeau"):
                yield path, value
                for member in vars(value).copy():
                    if member == "__new__" and issubclass(value, tuple):
                        continue  # of a named tuple: Python writes it, without the names of our module
                    function = inspect.getattr_static(value, member)
                    if isinstance(function, (classmethod, staticmethod)):
                        function = function.__func__
                    elif isinstance(function, property):
                        function = function.fget
                    if isinstance(function, types.FunctionType):
                        yield f"{path}.{member}", function
    for name, method in registry.METHODS.items():
        function = registry.resolved(method)
        if isinstance(function, types.FunctionType):
            yield f"flambeau.Tensor.{name}", function


def test_the_annotations_of_everything_public_can_be_looked_up() -> None:
    seen: set[int] = set()
    wrong = []
    for path, value in annotated():
        if id(value) in seen:
            continue
        seen.add(id(value))
        try:
            typing.get_type_hints(value)
        except Exception as error:
            wrong.append(f"{path}: {type(error).__name__}: {error}")
    assert len(seen) > 3000
    assert not wrong, "\n".join(wrong[:20])


def test_what_the_annotations_say() -> None:
    hints = typing.get_type_hints(flambeau.nn.Module.get_submodule)
    assert hints == {"target": str, "return": flambeau.nn.Module}
    assert typing.get_type_hints(flambeau.nn.Module)["_modules"] == dict[str, flambeau.nn.Module | None]
    assert typing.get_type_hints(flambeau.addmm)["mat1"] is flambeau.Tensor
    assert typing.get_type_hints(flambeau.Tensor.exp)["return"] is flambeau.Tensor
