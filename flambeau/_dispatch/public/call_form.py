"""How a public function was called: which arguments were given, and which of them by name.

Public functions bind their arguments and hand all of them on, those that nobody gave with their defaults. PyTorch's
compiled functions show a call as it was written. The caller's instructions say how that was.
"""

from __future__ import annotations

import bisect
import dis
import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from .namespaces import is_unbound
from .places import is_compiled_in_pytorch, is_method, is_only_method


class _Form(NamedTuple):
    """How many arguments a call gives by position, and the names of the others."""

    positional: int
    names: tuple[str, ...]


class Call(NamedTuple):
    """A call as PyTorch shows it."""

    is_method: bool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def as_called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The call as PyTorch shows it to overrides; `args` and `kwargs` are all that the function has bound."""
    only_method = is_only_method(function)
    parameters = _parameters(function)
    if parameters is None:
        return Call(only_method, args, kwargs)
    if not only_method and not is_compiled_in_pytorch(function):
        return Call(False, *_required_by_position(parameters, args, kwargs))
    form = _form_of_call(_frame_of(function))
    for shift in (0, 1):
        if form is None:
            break
        # What a call does not give has its default's value; if that is not so, `self` came before what it gives.
        restored = _restored(_Form(form.positional + shift, form.names), parameters, args, kwargs)
        if restored is not None:
            return Call(only_method or (shift == 1 and is_method(function)), *restored)
    return Call(only_method, *_without_defaults(parameters, args, kwargs))


@functools.lru_cache(maxsize=4096)
def _parameters(function: Any) -> tuple[inspect.Parameter, ...] | None:
    is_ours = (getattr(function, "__module__", None) or "").partition(".")[0] in ("flambeau", "torch")
    if not is_ours or not (isinstance(function, FunctionType) or is_unbound(function)):
        return None
    return tuple(inspect.signature(function).parameters.values())


def _frame_of(function: Any) -> FrameType | None:
    """The frame that called the function which is running now."""
    frame: FrameType | None = sys._getframe(2)
    code = getattr(function, "__code__", None)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return None if frame is None else frame.f_back


@functools.lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[list[int], list[dis.Instruction]]:
    found = list(dis.get_instructions(code))
    return [each.offset for each in found], found


def instruction_of(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame's code, and the number of the one that is running."""
    offsets, found = _instructions(frame.f_code)
    return found, bisect.bisect_right(offsets, frame.f_lasti) - 1


def _form_of_call(frame: FrameType | None) -> _Form | None:
    """What the running instruction says of the call that it makes; None where that is only known at run time."""
    if frame is None:
        return None
    instructions, number = instruction_of(frame)
    while instructions[number].opname == "CACHE":
        number -= 1
    name, count = instructions[number].opname, instructions[number].arg or 0
    names: tuple[str, ...] = ()
    if name in ("CALL_FUNCTION_KW", "CALL_KW"):
        names = instructions[number - 1].argval
    elif name in ("CALL", "PRECALL"):
        names = _names_before(instructions, number, frame.f_code)
    elif name not in ("CALL_FUNCTION", "CALL_METHOD"):
        return None
    return _Form(count - len(names), names)


def _names_before(instructions: list[dis.Instruction], number: int, code: CodeType) -> tuple[str, ...]:
    """The names that a call has of its own: nothing but its own preparation stands between."""
    for each in reversed(instructions[:number]):
        if each.opname == "KW_NAMES":
            names: tuple[str, ...] = code.co_consts[each.arg or 0]
            return names
        if each.opname not in ("PRECALL", "CACHE"):
            break
    return ()


def _restored(
    form: _Form, parameters: tuple[inspect.Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments in the form of the call; None if they cannot have come from it."""
    if form.positional > len(args):
        return None
    variadic = next((i for i, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), len(args))
    known = dict(kwargs) | {each.name: value for each, value in zip(parameters[:variadic], args, strict=False)}
    if any(name not in known for name in form.names) or (len(args) > variadic and form.positional < len(args)):
        return None
    by_name = {each.name: each for each in parameters}
    given = {each.name for each in parameters[: form.positional]} | set(form.names)
    if any(name not in given and not _is_default(by_name[name], value) for name, value in known.items()):
        return None
    return args[: form.positional], {name: known[name] for name in form.names}


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    default = parameter.default
    return value is default or (type(value) in (int, float, str, bool, tuple) and type(value) is type(default)
                                and value == default)  # fmt: skip


def _without_defaults(
    parameters: tuple[inspect.Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments but those at the end that have their defaults' values."""
    by_name = {each.name: each for each in parameters}
    kept = {name: value for name, value in kwargs.items() if not _is_default(by_name[name], value)}
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return args, kept
    number = len(args)
    while number and _is_default(parameters[number - 1], args[number - 1]):
        number -= 1
    return args[:number], kept


def _required_by_position(
    parameters: tuple[inspect.Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that have no default by position, and all others by name: how Python code in PyTorch shows them."""
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return args, kwargs
    required = [each for each in parameters[: len(args)] if each.default is each.empty]
    number = len(required)
    named = {each.name: value for each, value in zip(parameters[number:], args[number:], strict=False)}
    return args[:number], {**named, **{key: value for key, value in kwargs.items() if key != "out"}}
