"""The signatures of PyTorch's built-in functions: from its operator schemas, and from the stubs in its wheel.

Neither is exact. Schemas call `self` what functions call `input`, and list overloads that Python does not see; stubs
know nothing of `linalg`, `special` and `fft`. So both only propose, and real calls of PyTorch decide (`binding.py`).
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch as pytorch

SPACES = {"": "", "linalg": "linalg_", "special": "special_", "fft": "fft_", "sparse": "sparse_", "nn.functional": ""}
"""Namespaces that have built-in functions, with the beginning of their operators' names."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an overload. `kind` is a word for its type that `binding.py` knows a value for."""

    name: str
    kind: str
    keyword_only: bool = False
    required: bool = True
    default: Any = None
    variadic: bool = False
    count: int = 2  # how many tensors there are in a tuple of them


Overload = tuple[Parameter, ...]

_BY_NAME = {
    "dtype": "dtype",
    "output_dtype": "dtype",
    "out_dtype": "dtype",
    "layout": "layout",
    "device": "device",
    "memory_format": "memory_format",
    "generator": "generator",
    "names": "names",
    "ndarray": "array",
    "cls": "class",
    "as_tuple": "bool",
}
_KINDS = {
    "Tensor": "tensor",
    "List[Tensor]": "tensors",
    "List[Optional[Tensor]]": "tensors",
    "number": "number",
    "Scalar": "number",
    "List[number]": "numbers",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "List[int]": "ints",
    "List[SymInt]": "ints",
    "List[float]": "floats",
    "List[bool]": "bools",
    "Generator": "generator",
    "Device": "device",
    "Dimname": "names",
    "List[str]": "names",
}


@functools.cache
def _schemas() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for schema in pytorch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            found.setdefault(schema.name[6:], []).append(schema)
    return found


def _from_schema(schema: Any, method: bool) -> Overload:
    parameters = []
    outs = [each for each in schema.arguments if each.is_out]
    for argument in schema.arguments:
        name = argument.name
        if argument.is_out:
            continue
        if name == "self":
            if method:
                continue
            name = "input"
        text = str(argument.type)
        optional = re.fullmatch(r"Optional\[(.*)\]", text)
        kind = _BY_NAME.get(name) or _KINDS.get(optional[1] if optional else text, "other")
        given = argument.has_default_value()
        default = argument.default_value if given else None
        parameters.append(Parameter(name, kind, argument.kwarg_only, not given, default))
    if outs:
        kind = "tensor" if len(outs) == 1 else "tensors"
        parameters.append(Parameter("out", kind, True, False, count=len(outs)))
    return tuple(parameters)


_STUB_KINDS = {
    "Literal[True]": "bool",
    "Literal[False]": "bool",
    "Any": "data",
    "_float": "float",
    "_bool": "bool",
    "str": "str",
    "_dtype": "dtype",
    "_layout": "layout",
    "Generator": "generator",
    "memory_format": "memory_format",
    "DeviceLikeType": "device",
}


def _stub_kind(name: str, annotation: str) -> str:
    text = annotation.removesuffix(" | None").replace("SymInt", "_int").replace("_int | _int", "_int")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if text.startswith(("Tensor | Number", "Tensor | _int", "Tensor | _float")):
        return "number"
    if text == "Tensor":
        return "tensor"
    if text.startswith(("tuple[Tensor", "Tensor | tuple[Tensor", "Tensor | list")):
        return "tensors"
    if text.startswith("Number"):
        return "number"
    if text in ("_int", "int"):
        return "int"
    if text in ("_size", "Sequence[_int]", "_int | _size", "_int | Sequence[_int]"):
        return "ints"
    if text.startswith("Sequence[Number"):
        return "numbers"
    if text.startswith("Sequence[_float"):
        return "floats"
    return _STUB_KINDS.get(text, "other")


def _from_stub(node: ast.FunctionDef, method: bool) -> Overload:
    arguments = node.args
    parameters = []
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    for position, each in enumerate(positional):
        if each.arg == "self" and method:
            continue
        default = arguments.defaults[position - missing] if position >= missing else None
        parameters.append(_stub_parameter(each, default, False))
    if arguments.vararg is not None:
        name = arguments.vararg.arg
        parameters.append(Parameter(name, "ints", False, True, None, variadic=True))
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(_stub_parameter(each, default, True))
    return tuple(parameters)


def _stub_parameter(argument: ast.arg, default: ast.expr | None, keyword_only: bool) -> Parameter:
    kind = _stub_kind(argument.arg, ast.unparse(argument.annotation) if argument.annotation else "Any")
    value = None
    if default is not None:
        try:
            value = ast.literal_eval(default)
        except ValueError:  # a name, such as `strided`
            value = ast.unparse(default)
    count = ast.unparse(argument.annotation).split("]")[0].count("Tensor") if argument.annotation else 0
    return Parameter(argument.arg, kind, keyword_only, default is None, value, count=max(count, 2))


@functools.cache
def _stubs(file: str, of_class: str | None) -> dict[str, list[Overload]]:
    tree = ast.parse((Path(pytorch.__file__).parent / "_C" / file).read_text(encoding="utf-8"))
    body: list[Any] = tree.body
    if of_class is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == of_class)
    found: dict[str, list[Overload]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(_from_stub(node, of_class is not None))
    return found


def overloads(space: str, name: str) -> list[Overload]:
    """What PyTorch's documents propose for the function `space.name`; the space "Tensor" has the methods."""
    method = space == "Tensor"
    operator = name if method else SPACES[space] + name
    schemas = _schemas().get(operator, [])
    if method:
        schemas = [each for each in schemas if any(argument.name == "self" for argument in each.arguments)]
        proposed = list(_stubs("__init__.pyi", "TensorBase").get(name, []))
        functions = _stubs("_VariableFunctions.pyi", None).get(name, [])  # which have the older orders of arguments
        proposed += [tuple(parameter for parameter in each if parameter.name != "input") for each in functions]
    elif space == "":
        proposed = list(_stubs("_VariableFunctions.pyi", None).get(name, []))
    elif space == "nn.functional":
        proposed = list(_stubs("_nn.pyi", None).get(name, []))
    else:
        proposed = []
    proposed += [_from_schema(schema, method) for schema in schemas]
    seen: dict[tuple[Any, ...], Overload] = {}
    for each in proposed:
        seen.setdefault(tuple((p.name, p.kind, p.keyword_only, p.required, p.variadic, p.count) for p in each), each)
    return list(seen.values())
