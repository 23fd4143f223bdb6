"""TorchScript's types: what annotations say, which values are of a type, what arguments become inside."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core.device import device, layout, memory_format
from ..._core.dtype import dtype
from ..._core.generator import Generator
from ..._core.tensor import Tensor
from ...futures import Future
from .numbers_of import number_of_dtype, number_of_layout, number_of_memory_format, words

_PLAIN = frozenset(
    words(
        "Tensor int float bool str complex number Scalar NoneType Any Device Generator Stream Storage QScheme AnyTuple "
        "AnyList AnyDict AnyEnum AnyClassType Layout ScalarType MemoryFormat Dimname Capsule PyObject SymInt"
    )
)
_CONTAINERS = {"List": 1, "Dict": 2, "Optional": 1, "Future": 1, "Final": 1, "RRef": 1, "Await": 1}
_SEVERAL = ("Tuple", "Union")


@dataclass(frozen=True)
class Type:
    """A type: its name, the types inside of it, and for those of the program what they are."""

    name: str
    parameters: tuple[Type, ...] = ()
    definition: Any = None

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}[{', '.join(map(str, self.parameters))}]"


TENSOR = Type("Tensor")

Resolve = Callable[[str], Any]
"""Gives what a qualified name means."""


class NotInLanguage(RuntimeError):
    """Something that is no TorchScript, or that a program may not name."""


def dotted(node: ast.expr) -> str | None:
    """The text of `a.b.c`; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def read_type(node: ast.expr, resolve: Resolve) -> Type:
    """The type that an annotation says."""
    if isinstance(node, ast.Constant) and node.value is None:
        return Type("NoneType")
    name = dotted(node)
    if name is not None:
        if name in _PLAIN:
            return Type(name)
        if name in ("List", "Dict", "Tuple"):
            return Type(f"Any{name}")
        if name.startswith("__torch__."):
            return Type(name, (), resolve(name))
    if isinstance(node, ast.Subscript):
        name = dotted(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in _SEVERAL or (name in _CONTAINERS and len(inner) == _CONTAINERS[name]):
            return Type(name, tuple([read_type(each, resolve) for each in inner]))
    raise NotInLanguage(f"{ast.unparse(node)[:200]!r} is no type of TorchScript")


def _is_object(value: Any, wanted: Type) -> bool:
    found = getattr(value, "_definition", None)
    if found is None:
        fields = getattr(wanted.definition, "fields", None)
        return fields is not None and getattr(value, "_fields", None) == fields
    if found is wanted.definition:
        return True
    if getattr(wanted.definition, "is_interface", False):
        return all(name in found.methods for name in wanted.definition.methods)
    return bool(found.name == wanted.name)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "SymInt": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "complex": lambda value: isinstance(value, complex),
    "number": lambda value: isinstance(value, (int, float, complex)) and not isinstance(value, bool),
    "Scalar": lambda value: isinstance(value, (int, float, complex)),
    "NoneType": lambda value: value is None,
    "Any": lambda value: True,
    "Device": lambda value: isinstance(value, device),
    "Generator": lambda value: isinstance(value, Generator),
    "Future": lambda value: isinstance(value, Future),
    "AnyTuple": lambda value: isinstance(value, tuple),
    "AnyList": lambda value: isinstance(value, list),
    "AnyDict": lambda value: isinstance(value, dict),
}


def is_of(value: Any, wanted: Type) -> bool:
    """Whether a value is of a type, the parts of containers included."""
    name, inner = wanted.name, wanted.parameters
    check = _CHECKS.get(name)
    if check is not None:
        return check(value)
    if name == "List":
        return isinstance(value, list) and all(is_of(each, inner[0]) for each in value)
    if name == "Dict":
        return isinstance(value, dict) and all(is_of(k, inner[0]) and is_of(v, inner[1]) for k, v in value.items())
    if name == "Tuple":
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(is_of, value, inner))
    if name == "Optional":
        return value is None or is_of(value, inner[0])
    if name == "Union":
        return any(is_of(value, each) for each in inner)
    return _is_object(value, wanted)


class Misfit(Exception):
    """A value that is not of the type that is asked for."""


def given(value: Any, wanted: Type) -> Any:
    """A caller's argument as a value of a program: lists are copied, dtypes are numbers; `Misfit` if it is wrong."""
    name, inner = wanted.name, wanted.parameters
    if name == "Tensor":
        if isinstance(value, Tensor):
            return value
        raise Misfit
    convert = _CONVERSIONS.get(name)
    if convert is not None:
        return convert(value)
    if name == "Optional":
        return None if value is None else given(value, inner[0])
    if name == "Union":
        return value if any(is_of(value, each) for each in inner) else _first(value, inner)
    if name == "List":
        if not isinstance(value, (list, tuple)):
            raise Misfit
        return [given(each, inner[0]) for each in value]
    if name == "Tuple":
        if not isinstance(value, (list, tuple)) or len(value) != len(inner):
            raise Misfit
        return tuple([given(each, part) for each, part in zip(value, inner, strict=True)])
    if name == "Dict":
        if not isinstance(value, dict):
            raise Misfit
        return {given(each, inner[0]): given(item, inner[1]) for each, item in value.items()}
    if not is_of(value, wanted):
        value = getattr(wanted.definition, "converted", _refuse)(value)
    return value


def _refuse(value: Any) -> Any:
    raise Misfit


def _first(value: Any, types: tuple[Type, ...]) -> Any:
    fitting = next((each for each in types if _fits(value, each)), None)
    if fitting is None:
        raise Misfit
    return given(value, fitting)


def _fits(value: Any, wanted: Type) -> bool:
    try:
        given(value, wanted)
    except Misfit:
        return False
    return True


def _as_int(value: Any) -> int:
    if isinstance(value, dtype):
        return number_of_dtype(value)
    if isinstance(value, layout):
        return number_of_layout(value)
    if isinstance(value, memory_format):
        return number_of_memory_format(value)
    if not isinstance(value, (int, np.integer)):
        raise Misfit
    return int(value)


def _as_float(value: Any) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise Misfit
    return float(value)


def _as_complex(value: Any) -> complex:
    if not isinstance(value, (int, float, complex, np.number)):
        raise Misfit
    return complex(value)


def _as_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise Misfit
    return builtins.bool(value)


def _as_device(value: Any) -> device:
    if isinstance(value, str):
        return device(value)
    if not isinstance(value, device):
        raise Misfit
    return value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": _as_float,
    "complex": _as_complex,
    "bool": _as_bool,
    "Device": _as_device,
    "Any": lambda value: value,
}
