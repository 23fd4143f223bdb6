"""Schemas of operators: `name.overload(Tensor(a!) x, int[] dims=[0], *, str? mode=None) -> (Tensor, Tensor)`."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._core.tensor import Tensor

_TYPES = frozenset(
    {
        "Any", "Device", "DeviceIndex", "Dimname", "Generator", "Layout", "MemoryFormat", "QScheme", "Scalar",
        "ScalarType", "Storage", "Stream", "SymBool", "SymFloat", "SymInt", "Tensor", "bool", "complex", "float", "int",
        "str",
    }
)  # fmt: skip
_TYPE = re.compile(r"(\w+)((?:\([^)]*\)|\[\d*\]|\?)*)")
_ALIAS = re.compile(r"\(([^)]*)\)")
NO_DEFAULT: Any = object()


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """Which memory an argument or a result is: results and arguments with one letter share it; `!` is written to."""

    before_set: frozenset[str]
    is_write: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter or a result."""

    name: str
    type_text: str
    alias_info: AliasInfo | None = None
    default: Any = NO_DEFAULT
    kwarg_only: bool = False
    shown: str = ""
    """The type with its aliases, as it was written."""

    @property
    def default_value(self) -> Any:
        """The default, None if there is none: `has_default_value` tells."""
        return None if self.default is NO_DEFAULT else self.default

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.default is not NO_DEFAULT

    @property
    def type(self) -> Any:
        """Its type, as TorchScript has it."""
        from ..jit._types import of_schema

        return of_schema(self.type_text)

    real_type = type

    @property
    def N(self) -> int | None:
        """The length of a list for which one number stands too."""
        length = re.search(r"\[(\d+)\]", self.type_text)
        return None if length is None else int(length[1])

    @property
    def is_out(self) -> bool:
        """Whether the result is written to it: it is changed, and given by name alone."""
        return self.is_write and self.kwarg_only

    @property
    def is_write(self) -> bool:
        """Whether the operator changes it."""
        return self.alias_info is not None and self.alias_info.is_write

    def __str__(self) -> str:
        text = f"{self.shown or self.type_text} {self.name}".rstrip()
        return text if self.default is NO_DEFAULT else f"{text}={_as_text(self.default)}"


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What an operator takes and gives."""

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False
    """Whether there may be more arguments, or more results, than those: `...`."""

    @property
    def is_mutable(self) -> bool:
        """Whether it changes arguments."""
        return any(each.is_write for each in self.arguments)

    def __str__(self) -> str:
        shown = []
        for number, each in enumerate(self.arguments):
            if each.kwarg_only and not (number and self.arguments[number - 1].kwarg_only):
                shown.append("*")
            shown.append(str(each))
        shown += ["..."] * self.is_vararg
        listed = [*map(str, self.returns), *["..."] * self.is_varret]
        results = listed[0] if len(listed) == 1 else f"({', '.join(listed)})"
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(shown)}) -> {results}"

    def is_backward_compatible_with(self, old_schema: FunctionSchema) -> bool:
        """Whether every call of an older schema is one of this: new arguments have defaults, old ones are the same."""
        ours = {each.name: each for each in self.arguments}
        same = (self.name, self.overload_name, self.is_vararg) == (
            old_schema.name,
            old_schema.overload_name,
            old_schema.is_vararg,
        )
        kept = all(
            each.name in ours and old.isSubtypeOf(ours[each.name].type)
            for each, old in ((each, each.type) for each in old_schema.arguments)
        )
        before = {each.name for each in old_schema.arguments}
        added = all(each.has_default_value() for each in self.arguments if each.name not in before)
        results = [str(each.type) for each in self.returns] == [str(each.type) for each in old_schema.returns]
        return same and kept and added and results

    def check_forward_compatible_with(self, old_schema: FunctionSchema) -> tuple[bool, str]:
        """Whether calls of this schema can be made where only an older one is known, and why not."""
        if not self.is_backward_compatible_with(old_schema):
            return False, "the older schema's calls are none of this"
        for each in self.arguments[len(old_schema.arguments) :]:
            if isinstance(each.default, (list, tuple, dict)):
                return False, f"the default of the new argument {each.name} is no plain value"
        return True, ""

    def takes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether these can be the arguments."""
        try:
            self.bind(args, kwargs)
        except RuntimeError:
            return False
        return True

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional arguments with defaults, and those by name; a RuntimeError where they are others."""
        names = {each.name for each in self.arguments}
        for name in kwargs:
            if name not in names:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
        positional = [each for each in self.arguments if not each.kwarg_only]
        if len(args) > len(positional) and not self.is_vararg:
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        found: dict[str, Any] = {}
        for number, argument in enumerate(self.arguments):
            if number < len(args) and not argument.kwarg_only:
                value = args[number]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            elif argument.has_default_value():
                value = argument.default
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
            if argument.type_text == "Tensor" and not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type 'Tensor' for argument '{argument.name}' but instead found "
                    f"type '{type(value).__name__}'.\nPosition: {number}\nValue: {value!r}\nDeclaration: {self}"
                )
            found[argument.name] = value
        by_name = {each.name: found[each.name] for each in self.arguments if each.kwarg_only}
        return (*(found[each.name] for each in positional), *args[len(positional) :]), by_name


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value).removesuffix("0") if repr(value).endswith(".0") else repr(value)
    return str(value)


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no bracket and in no string."""
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [each for each in parts if each]


def _argument(text: str, whole: str, kwarg_only: bool = False) -> Argument:
    match = _TYPE.match(text)
    if match is None or match[1] not in _TYPES:
        raise RuntimeError(
            f"unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar:\n"
            f"{whole}\n{' ' * max(whole.find(text), 0)}{'~' * len(text.partition(' ')[0])} <--- HERE"
        )
    alias = _ALIAS.search(match[2])
    info = None
    if alias is not None:
        before = alias[1].partition("->")[0].strip()
        info = AliasInfo(frozenset(before.rstrip("!").split("|")), before.endswith("!"))
    name, equals, default = text[match.end() :].strip().partition("=")
    return Argument(
        name.strip(), match[1] + _ALIAS.sub("", match[2]), info, _constant(default.strip()) if equals else NO_DEFAULT,
        kwarg_only, match[0],
    )  # fmt: skip


def _constant(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text  # a word such as `contiguous_format`


def parse(text: str, namespace: str = "") -> FunctionSchema:
    """The schema that a text describes."""
    head, opened, rest = text.partition("(")
    body, arrow, results = rest.rpartition("->")
    body, results = body.strip(), results.strip()
    if not opened or not arrow or not body.endswith(")"):
        raise RuntimeError(f"expected the schema of an operator as 'name(Tensor x) -> Tensor', got {text!r}")
    name, _, overload = head.strip().partition(".")
    arguments, by_name, is_vararg = [], False, False
    for each in _parts(body[:-1]):
        if each == "*":
            by_name = True
        elif each == "...":
            is_vararg = True
        else:
            arguments.append(_argument(each, text, by_name))
    if results.startswith("(") and results.endswith(")"):
        results = results[1:-1]
    listed = _parts(results)
    returns = tuple(_argument(each, text) for each in listed if each != "...")
    qualified = f"{namespace}::{name}" if namespace else name
    return FunctionSchema(qualified, overload, tuple(arguments), returns, is_vararg, "..." in listed)


def parse_schema(schema: str, allow_typevars: bool = True) -> FunctionSchema:
    """The schema that a text describes, under the name that PyTorch has for it."""
    return parse(schema)


# Schemas of Python functions ------------------------------------------------------------------------------------------

_OF_PYTHON: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device",
}  # fmt: skip
_IN_LISTS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
_SEQUENCES = (list, collections.abc.Sequence)


def _type_of(annotation: Any) -> str | None:
    """The name of a Python type in schemas; None if it has none."""
    if annotation in _OF_PYTHON:
        return _OF_PYTHON[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if set(inner) == {int, float, bool}:
            return "Scalar"
        others = [each for each in inner if each is not type(None)]
        if len(others) == len(inner) - 1:
            found = _type_of(others[0]) if len(others) == 1 else _type_of(typing.Union[tuple(others)])  # noqa: UP007
            return None if found is None or found.endswith("?") else f"{found}?"
    if origin in _SEQUENCES and len(inner) == 1:
        found = _type_of(inner[0])
        return f"{found}[]" if found in _IN_LISTS else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function, from its annotations; `mutates_args` names the tensors that it changes, or "unknown".

    >>> def scaled(x: flambeau.Tensor, factor: float = 2.0) -> flambeau.Tensor: ...
    >>> flambeau.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, float factor=2.) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def wrong(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(prototype_function)
    except (NameError, TypeError) as error:
        raise wrong(f"the annotations name something unknown: {error}.") from None
    every = mutates_args == "unknown"
    mutated = set() if isinstance(mutates_args, str) else set(mutates_args)
    arguments: list[str] = []
    by_name = False
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        shown = _type_of(hints[name])
        default = parameter.default
        if shown is not None and default is None and shown.endswith("?") and not _is_optional(parameter.annotation):
            shown = shown.removesuffix("?")
        if shown is None:
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}. The valid types are those of schemas.")
        if name in mutated or (every and shown.startswith("Tensor")):
            if not shown.startswith("Tensor"):
                raise wrong(f"Parameter {name} is in mutable_args but only Tensors or collections of them can be.")
            shown = shown.replace("Tensor", f"Tensor(a{number}!)", 1)
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            by_name = True
            arguments.append("*")
        text = f"{shown} {name}"
        if default is not parameter.empty:
            if not (default is None or isinstance(default, (int, float, bool, str, dtype, device))):
                raise wrong(f"Parameter {name} has an unsupported default value type {type(default)}.")
            text += f"={_as_text(default)}"
        arguments.append(text)
    unknown = mutated - set(signature.parameters)
    if unknown:
        raise wrong(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            "names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        raise wrong("No return type annotation was provided. Please add one.")
    result = hints["return"]
    if result is type(None):
        results = "()"
    elif typing.get_origin(result) is tuple:
        shown_results = [_type_of(each) for each in typing.get_args(result)]
        if None in shown_results:
            raise wrong(f"Return has unsupported type {result}.")
        results = f"({', '.join(each for each in shown_results if each)})"
    else:
        one = _type_of(result)
        if one is None:
            raise wrong(f"Return has unsupported type {result}.")
        results = one
    return f"{op_name or ''}({', '.join(arguments)}) -> {results}"


def _is_optional(annotation: Any) -> bool:
    """Whether the function itself says so: older Pythons add it where the default is None."""
    if isinstance(annotation, str):
        return "Optional" in annotation or "None" in annotation
    return type(None) in typing.get_args(annotation)
