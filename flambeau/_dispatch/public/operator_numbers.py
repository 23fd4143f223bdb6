"""Numbers that operators take in another form: what has one element stands for it, whatever its dtype is.

Operators are less strict than functions: `aten.cumsum.default(x, torch.tensor(1.0))` runs along dimension 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from .schema import FunctionSchema

_PLAIN = frozenset((int, float, complex, type(None)))


def _held(value: Any) -> Any:
    """The number in a tensor of one element, an array or a scalar of NumPy's; other values as they are."""
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 else value
    if isinstance(value, (np.ndarray, np.generic)) and value.size == 1 and not isinstance(value, float):
        return value.item()
    return value


def _as_int(value: Any) -> Any:
    number = _held(value)
    is_other = number is value and not isinstance(value, bool)
    return value if is_other or not isinstance(number, (int, float)) else int(number)


def _as_float(value: Any) -> Any:
    number = _held(value)
    return float(number) if isinstance(number, (int, float)) else value


def _as_bool(value: Any) -> Any:
    number = _held(value)
    return bool(number) if isinstance(number, (bool, int, float, complex)) else value


_FORMS: dict[str, Callable[[Any], Any]] = {"int": _as_int, "float": _as_float, "bool": _as_bool}
"""By the types of arguments. Tensors are refused where a schema says Scalar."""


def with_numbers(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an operator with numbers where its schema has numbers."""
    kinds = {each.name: each.type_text.removesuffix("?") for each in schema.arguments}
    positional = [each.name for each in schema.arguments if not each.kwarg_only]
    found = tuple([_number(kinds.get(name, ""), value) for name, value in zip(positional, args, strict=False)])
    named = {name: _number(kinds.get(name, ""), value) for name, value in kwargs.items()}
    return (*found, *args[len(found) :]), named


def _number(kind: str, value: Any) -> Any:
    if type(value) in _PLAIN and kind != "bool":
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_int, value)) if kind.startswith("int[") and not _is_plain(value) else value
    form = _FORMS.get(kind.replace("SymInt", "int"))
    return value if form is None else form(value)


def _is_plain(values: Any) -> bool:
    return {*map(type, values)} <= {int}
