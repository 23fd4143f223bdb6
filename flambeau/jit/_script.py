"""Scripting: what is scripted runs as the Python that it is, with its program beside it."""

from __future__ import annotations

import builtins
import dis
import typing
import weakref
from types import FunctionType
from typing import Any, TypeVar

from .._core.process.caller import IS_INTERNAL
from ..nn.modules.module import Module
from ._annotated import INTERFACE_MARK, script_name
from ._errors import Error
from ._module import RecursiveScriptModule, ScriptModule
from ._trace import ScriptFunction

Object = TypeVar("Object")


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """The function, class or module as TorchScript: it runs as Python, `code` and `graph` show its program, `save`
    writes that to an archive.

    A module is not changed: the result is one of its own, with the same parameters. Classes are given back as they are.

    >>> @flambeau.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(flambeau.tensor([1.0]))
    tensor([2.])

    Args:
        obj: a function, a class or a module.
        optimize: not used.
        example_inputs: not used.

    Returns:
        the same, with `code`, `graph` and `save`.
    """
    if builtins.isinstance(obj, FunctionType):
        return ScriptedFunction(obj)
    if builtins.isinstance(obj, Module) and not builtins.isinstance(obj, ScriptModule):
        twin = _twin(obj, {})
        twin.__class__ = _scripted_class(type(obj))
        return twin
    return obj


class ScriptedFunction(ScriptFunction):
    """A function that was scripted: a call is one of the function itself."""

    def __init__(self, function: FunctionType) -> None:
        self._function = self.__wrapped__ = function
        self.__name__ = self.name = function.__name__
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        annotations = function.__annotations__
        self._floats = {name: at for at, name in enumerate(names) if annotations.get(name) in (float, "float")}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._floats:
            args, kwargs = self._with_floats(args, kwargs)
        try:
            return self._function(*args, **kwargs)
        except Exception as error:
            _raise_as_torchscript(error)
            raise

    def _with_floats(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with floats where integers stand for parameters that are annotated as floats."""
        given = list(args)
        for name, at in self._floats.items():
            if at < len(given) and type(given[at]) is int:
                given[at] = float(given[at])
            elif type(kwargs.get(name)) is int:
                kwargs[name] = float(kwargs[name])
        return tuple(given), kwargs

    @property
    def qualified_name(self) -> str:
        """The name of the function in its program."""
        return f"__torch__.{self.__module__}.{self.name}"

    def _program(self) -> RecursiveScriptModule:
        """The program, written from the source each time: what the function calls may have changed."""
        from ._scripting.modules import scripted_function

        return scripted_function(self._function)

    def __reduce__(self) -> Any:
        return self.__qualname__  # as a function: where it was defined


_RAISE = dis.opmap["RAISE_VARARGS"]


def _raise_as_torchscript(error: Exception) -> None:
    """Raise `jit.Error` in place of what an `assert` or a `raise` of the scripted code raised, as the interpreter does.

    What an op of the package refuses stays as it is.
    """
    if builtins.isinstance(error, Error):
        return
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return
    code = place.tb_frame.f_code
    if IS_INTERNAL[code.co_filename] or code.co_code[place.tb_lasti] != _RAISE:
        return
    kind = type(error)
    name = "AssertionError" if kind is AssertionError else f"{kind.__module__}.{kind.__qualname__}"
    raise Error(
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call "
        f'last):\n  File "{code.co_filename}", line {place.tb_lineno}, in {code.co_name}\n{name}: {error}'
    ) from error


def _call_as_torchscript(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a scripted module."""
    try:
        own: Any = type(self).__mro__[1]  # the module's class
        return own.__call__(self, *args, **kwargs)
    except Exception as error:
        _raise_as_torchscript(error)
        raise


def _twin(module: Module, made: dict[int, Module]) -> Any:
    """A module with the same tensors and attributes, and of the modules inside twins."""
    if builtins.isinstance(module, RecursiveScriptModule):
        return module
    if id(module) not in made:
        twin = made[id(module)] = object.__new__(type(module))
        for name, value in vars(module).items():
            twin.__dict__[name] = value.copy() if builtins.isinstance(value, dict) and name.startswith("_") else value
        inside = twin.__dict__["_modules"]
        for name, child in inside.items():
            inside[name] = None if child is None else _twin(child, made)
    return made[id(module)]


_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


def _scripted_class(cls: type) -> type:
    """The class of what comes of scripting modules of a class: it has the program too."""
    found = _classes.get(cls)
    if found is None:
        same = {name: getattr(cls, name) for name in ("__doc__", "__module__", "__qualname__")}
        found = type(
            cls.__name__, (cls, ScriptModule), {**same, "__reduce_ex__": _reduced, "__call__": _call_as_torchscript}
        )
        _classes[cls] = found
    return found


def _reduced(self: Any, protocol: int) -> Any:
    """How a scripted module is copied and pickled: its class is made anew."""
    return _remade, (type(self).__mro__[1],), vars(self)


def _remade(cls: type) -> Any:
    return object.__new__(_scripted_class(cls))


def script_method(fn: Object) -> Object:
    """The method itself.

    Args:
        fn (Object): the method.

    Returns:
        the method.

    Example:
        >>> torch.jit.script_method(len) is len
        True
    """
    return fn


def interface(obj: Object) -> Object:
    """The class itself, marked as one that says what others have.

    Args:
        obj (Object): the class.

    Returns:
        the class.

    Example:
        >>> @torch.jit.interface
        ... class Encoder:
        ...     def encode(self, x: torch.Tensor) -> torch.Tensor:
        ...         pass
    """
    if not builtins.isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    setattr(obj, INTERFACE_MARK, script_name(obj))
    return obj


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, the types of a container's elements included.

    Args:
        obj: the value.
        target_type: the type, such as `list[int]`.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    types = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_matches(obj, each) for each in types)


def _matches(obj: Any, target: Any) -> bool:
    origin, parameters = typing.get_origin(target), typing.get_args(target)
    if target is Any:
        return True
    if target is None:
        return obj is None
    if origin is None:
        return builtins.isinstance(obj, target)
    if origin is typing.Union:
        return any(_matches(obj, each) for each in parameters)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_matches(key, parameters[0]) and _matches(value, parameters[1]) for key, value in obj.items())
    if origin is tuple and not (len(parameters) == 2 and parameters[1] is ...):
        return len(obj) == len(parameters) and all(map(_matches, obj, parameters))
    return all(_matches(each, parameters[0]) for each in obj)
