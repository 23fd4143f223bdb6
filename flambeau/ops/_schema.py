"""Schemas of Python functions, and the parser of schemas under the name that PyTorch has for it."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._core.tensor import Tensor
from .._dispatch.public.schema import Argument, FunctionSchema, as_text, parse, read_types_by
from ..jit._types import of_schema

__all__ = ["Argument", "FunctionSchema", "infer_schema", "parse", "parse_schema"]


def _type_of_text(text: str) -> Any:
    return of_schema(text)


read_types_by(_type_of_text)


def parse_schema(schema: str, allow_typevars: bool = True) -> FunctionSchema:
    """The schema that a text describes, under the name that PyTorch has for it."""
    return parse(schema)


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

    Args:
        prototype_function (Callable): the function.
        mutates_args (str or iterable of strs): the names of arguments that it changes, or "unknown".
        op_name (str, optional): a name for the schema.
        tags: tags of `torch.Tag`. Default: `()`.

    Returns:
        str: the schema.
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
            text += f"={as_text(default)}"
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
