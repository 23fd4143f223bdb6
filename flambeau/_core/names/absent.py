"""Names that PyTorch has and that need no code of their own here.

Some cannot do their work yet: importing them is fine, using them raises an error that says so. Others cannot do it in
PyTorch's own build for the CPU either, and raise what they raise there. A module lists such names in a `Table`, which
makes the objects when they are asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from .documentation import page

_SHOWN = (bool, int, str, type(None), list, dict)
_CONSTANT_DOC = """Answer a question about a device or library that this installation lacks: `{value}`.

Args:
    *args, **kwargs: not used.

Returns:
    `{value}`, as PyTorch returns in a build without it.
"""


def torch_name(module: str, name: str) -> str:
    """What PyTorch calls the name: 'torch.fx.Graph'."""
    return ".".join(["torch", *module.split(".")[1:], name])


def refusal(full_name: str, reason: str) -> NotImplementedError:
    """The error of a name that cannot do its work yet."""
    return NotImplementedError(f"{full_name} does not work in Flambeau yet: {reason}. {page('names')} lists what does.")


def _home(module: str) -> str:
    """Where an object made here says that it stands: in `torch` while Flambeau stands in for it."""
    stands_in = sys.modules.get("torch") is sys.modules.get("flambeau")
    return module if stands_in else module.replace("torch", "flambeau", 1)


def raising_function(full_name: str, error: Callable[[], Exception]) -> Callable[..., Any]:
    """A function whose every call raises the error."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise error()

    module, _, function.__name__ = full_name.rpartition(".")
    function.__qualname__ = function.__name__
    function.__module__ = _home(module)
    function.__doc__ = str(error())
    function.__dict__["__unusable__"] = True
    return function


def raising_class(
    full_name: str, error: Callable[[], Exception], bases: tuple[type, ...] = (), **attributes: Any
) -> type:
    """A class that can be named, tested for and inherited from; making an instance raises the error."""

    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise error()

    module, _, last = full_name.rpartition(".")
    own = {"__unusable__": True, "__new__": refuse, "__module__": _home(module), "__doc__": str(error())}
    return type(last, bases, own | attributes)


def absent_function(full_name: str, reason: str) -> Callable[..., Any]:
    """A function that does not work yet."""
    function = raising_function(full_name, lambda: refusal(full_name, reason))
    function.__dict__["__absent__"] = reason
    return function


def absent_class(full_name: str, reason: str, bases: tuple[type, ...] = ()) -> type:
    """A class that does not work yet."""
    return raising_class(full_name, lambda: refusal(full_name, reason), bases, __absent__=reason)


class Table:
    """The names of a module that need no code of their own: `__getattr__, __dir__ = Table(__name__)....parts()`."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.makers: dict[str, Callable[[str], Any]] = {}

    def _add(self, names: str, maker: Callable[[str], Any]) -> None:
        self.makers.update(dict.fromkeys(names.split(), maker))

    def absent(self, reason: str, *, functions: str = "", classes: str = "") -> Table:
        """Names that do not work yet."""
        self._add(functions, lambda name: absent_function(torch_name(self.module, name), reason))
        self._add(classes, lambda name: absent_class(torch_name(self.module, name), reason))
        return self

    def raising(self, error: type[Exception], message: str, *, functions: str = "", classes: str = "") -> Table:
        """Names that PyTorch's build for the CPU refuses too; `{name}` in the message is the name."""

        def error_of(name: str) -> Callable[[], Exception]:
            return lambda: error(message.format(name=name))

        self._add(functions, lambda name: raising_function(torch_name(self.module, name), error_of(name)))
        self._add(classes, lambda name: raising_class(torch_name(self.module, name), error_of(name)))
        return self

    def returning(self, make: Callable[[], Any], *, functions: str) -> Table:
        """Functions that answer the same to every question, as they do where there is no such device."""

        def maker(name: str) -> Callable[..., Any]:
            def function(*args: Any, **kwargs: Any) -> Any:
                return make()

            function.__name__ = function.__qualname__ = name
            function.__module__ = self.module
            function.__doc__ = _CONSTANT_DOC.format(
                value=repr(make()) if type(make()) in _SHOWN else type(make()).__name__
            )
            return function

        self._add(functions, maker)
        return self

    def constant(self, name: str, value: Any) -> Table:
        """A value that is no function."""
        self._add(name, lambda _: value)
        return self

    def submodules(self, names: str) -> Table:
        """Modules that load on first use."""
        self._add(names, lambda name: importlib.import_module(f"{self.module}.{name}"))
        return self

    def elsewhere(self, names: str, module: str) -> Table:
        """Names that stand in another module of the package, which loads on first use."""
        package = self.module.partition(".")[0]
        self._add(names, lambda name: getattr(importlib.import_module(f"{package}.{module}"), name))
        return self

    def get(self, name: str) -> Any:
        """The object behind a name, kept in the module from then on; an AttributeError if there is none."""
        maker = self.makers.get(name)
        if maker is None:
            raise AttributeError(f"module {self.module!r} has no attribute {name!r}")
        value = maker(name)
        sys.modules[self.module].__dict__[name] = value
        return value

    def names(self) -> list[str]:
        """What the module has, these names included."""
        return sorted({*sys.modules[self.module].__dict__, *self.makers})

    def parts(self) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """The module's `__getattr__` and `__dir__`."""
        return self.get, self.names
