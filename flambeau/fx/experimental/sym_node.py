"""Numbers with nodes: `SymNode` knows a number and what it was made of; `DynamicInt` marks an integer that varies."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

from ..._core.names.symbolic import METHODS

__all__ = ["DynamicInt", "SymNode", "magic_methods", "method_to_operator"]

_UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "pos": operator.pos, "abs": operator.abs, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round, "sym_not": operator.not_,
}  # fmt: skip
magic_methods: dict[str, Callable[..., Any]] = {**METHODS, **_UNARY}
"""What nodes can be asked for, by name."""


def method_to_operator(method: str) -> Callable[..., Any]:
    """The function that a method of nodes stands for."""
    return magic_methods[method]


class SymNode:
    """A number, `hint`, and the expression that it came from, which is kept as text or as any object that prints."""

    def __init__(
        self, expr: Any, shape_env: Any, pytype: type, hint: Any, constant: Any = None, fx_node: Any = None,
        optimized_summation: bool = False,
    ) -> None:  # fmt: skip
        self.expr = self._expr = expr
        self.shape_env, self.pytype, self.hint, self.constant, self.fx_node = shape_env, pytype, hint, constant, fx_node

    def _value(self) -> Any:
        if self.hint is None:
            raise RuntimeError(f"the number that {self.expr} stands for is not known")
        return self.hint

    def is_int(self) -> bool:
        """Whether it is a whole number."""
        return self.pytype is int

    def is_float(self) -> bool:
        """Whether it is a float."""
        return self.pytype is float

    def is_bool(self) -> bool:
        """Whether it is a truth."""
        return self.pytype is bool

    def is_constant(self) -> bool:
        """Whether it is a plain number that was wrapped."""
        return False

    is_nested_int = is_symbolic = is_constant

    def has_hint(self) -> bool:
        """Whether the number is known."""
        return self.hint is not None

    def int_(self) -> int:
        """The number."""
        return int(self._value())

    def bool_(self) -> bool:
        """The truth."""
        return bool(self._value())

    def guard_int(self, file: builtins.str, line: int) -> int:
        """The number."""
        return self.int_()

    def guard_float(self, file: builtins.str, line: int) -> float:
        """The number."""
        return float(self._value())

    def guard_bool(self, file: builtins.str, line: int) -> bool:
        """The truth."""
        return self.bool_()

    def maybe_as_int(self) -> int | None:
        """The number if it is whole and known."""
        return int(self.hint) if self.is_int() and self.hint is not None else None

    def wrap_int(self, num: int) -> SymNode:
        """A plain number as a node."""
        return SymNode(num, self.shape_env, int, num, constant=num)

    def wrap_float(self, num: float) -> SymNode:
        """A plain number as a node."""
        return SymNode(num, self.shape_env, float, num, constant=num)

    def wrap_bool(self, num: bool) -> SymNode:
        """A plain truth as a node."""
        return SymNode(num, self.shape_env, bool, num, constant=num)

    def clone(self) -> SymNode:
        """The node itself: nodes do not change."""
        return self

    def str(self) -> builtins.str:
        """The expression."""
        return f"{self.expr}"

    _graph_repr = str

    def __repr__(self) -> builtins.str:
        return f"SymNode({self.expr}, shape_env={self.shape_env}, pytype={self.pytype}, hint={self.hint})"


def _result(self: SymNode, name: str, function: Callable[..., Any], others: tuple[Any, ...]) -> SymNode:
    parts = [self.expr, *(getattr(each, "expr", each) for each in others)]
    known = [self.hint, *(getattr(each, "hint", each) for each in others)]
    hint = None if any(each is None for each in known) else function(*known)
    pytype = type(hint) if hint is not None else self.pytype
    return SymNode(f"{name}({', '.join(map(repr, parts))})", self.shape_env, pytype, hint)


def _binary(name: str, function: Callable[..., Any]) -> Callable[..., SymNode]:
    def operation(self: SymNode, other: Any) -> SymNode:
        return _result(self, name, function, (other,))

    return operation


def _unary(name: str, function: Callable[..., Any]) -> Callable[..., SymNode]:
    def operation(self: SymNode, ndigits: Any = None) -> SymNode:
        return _result(self, name, function, () if ndigits is None else (ndigits,))

    return operation


for _name, _function in METHODS.items():
    setattr(SymNode, f"{_name}_" if _name in ("and", "or") else _name, _binary(_name, _function))
for _name, _function in _UNARY.items():
    setattr(SymNode, _name, _unary(_name, _function))


class DynamicInt(int):
    """A whole number that a program expects to vary from call to call; arithmetic with it gives such numbers."""

    def __repr__(self) -> str:
        return f"DynamicInt({int(self)})"


def _kept(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def operation(self: DynamicInt, *others: Any) -> Any:
        result = plain(self, *others)
        return DynamicInt(result) if type(result) is int else result

    return operation


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "and", "rand",
    "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert",
):  # fmt: skip
    setattr(DynamicInt, f"__{_name}__", _kept(f"__{_name}__"))
