"""Schemas of operators: `name.overload(Tensor(a!) x, int[] dims=[0], *, str? mode=None) -> (Tensor, Tensor)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..._core.tensor import Tensor

_TYPES = frozenset(
    {
        "Any", "AnyEnumType", "AnyListType", "Await", "Device", "DeviceIndex", "Dict", "Dimname", "Future", "Generator",
        "Layout", "MemoryFormat", "QScheme", "RRef", "Scalar", "ScalarType", "Storage", "Stream", "SymBool", "SymFloat",
        "SymInt", "Tensor", "bool", "complex", "float", "int", "str", "t", "t1", "t2", "tVal",
    }
)  # fmt: skip
_HEAD = re.compile(r"\w+")
_ALIAS = re.compile(r"(?<!Dict)(?<!Future)(?<!RRef)(?<!Await)\(([^(),]*)\)")
NO_DEFAULT: Any = object()
_type_reader: Callable[[str], Any] = str


def read_types_by(reader: Callable[[str], Any]) -> None:
    """Let `Argument.type` be what `reader` makes of a type's text: the types are TorchScript's."""
    global _type_reader
    _type_reader = reader


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

    def is_left_out(self, value: Any) -> bool:
        """Whether a value is the default, so that calls are written without it."""
        return type(value) is type(self.default) and value == self.default

    @property
    def type(self) -> Any:
        """The argument's type, as TorchScript has it."""
        return _type_reader(self.type_text)

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
        return text if self.default is NO_DEFAULT else f"{text}={as_text(self.default)}"


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

    def __hash__(self) -> int:
        return hash((self.name, self.overload_name))  # defaults may be lists

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

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], may_be_number: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional arguments with defaults, and those by name; a RuntimeError where they are others.

        With `may_be_number`, a number stands for a tensor.
        """
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
            if argument.type_text == "Tensor" and not may_be_number and not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type 'Tensor' for argument '{argument.name}' but instead found "
                    f"type '{type(value).__name__}'.\nPosition: {number}\nValue: {value!r}\nDeclaration: {self}"
                )
            found[argument.name] = value
        by_name = {each.name: found[each.name] for each in self.arguments if each.kwarg_only}
        return (*(found[each.name] for each in positional), *args[len(positional) :]), by_name


def as_text(value: Any) -> str:
    """A default as schemas write it."""
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
    head = _HEAD.match(text)
    if not text.startswith(("(", "__torch__.")) and (head is None or head[0] not in _TYPES):  # tuples and classes are
        raise RuntimeError(
            f"unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar:\n"
            f"{whole}\n{' ' * max(whole.find(text), 0)}{'~' * len(text.partition(' ')[0])} <--- HERE"
        )
    declared, equals, default = text.partition("=")
    shown, name = _type_and_name(declared.strip())
    alias = _ALIAS.search(shown)
    info = None
    if alias is not None:
        before = alias[1].partition("->")[0].strip()
        info = AliasInfo(frozenset(before.rstrip("!").split("|")), before.endswith("!"))
    value = _constant(default.strip()) if equals else NO_DEFAULT
    return Argument(name, _ALIAS.sub("", shown), info, value, kwarg_only, shown)


def _type_and_name(text: str) -> tuple[str, str]:
    """`Tensor(a -> *)[] tensors` in two: the last space outside of brackets separates them."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] in ")]") - (text[place] in "([")
        if text[place] == " " and not depth:
            return text[:place], text[place + 1 :]
    return text, ""


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
