"""Sizes as symbols: the functions that PyTorch's programs apply to sizes, which are plain numbers here."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float",
    "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip

METHODS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
"""What a node can be asked to do with another one, and the operator that asks."""
_REVERSED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "lshift", "rshift")
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "pos": operator.pos, "abs": operator.abs, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round,
}  # fmt: skip


class _Symbol:
    """A number of which a node knows: each operation asks the node for the node of its result.

    Sizes are plain numbers in this package: such objects exist where a program makes them, of nodes of its own or of
    `torch.fx.experimental.sym_node.SymNode`.
    """

    def __init__(self, node: Any) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node._graph_repr())

    def __bool__(self) -> bool:
        return bool(self.node.bool_())

    def __int__(self) -> int:
        return int(self.node.int_())

    def __float__(self) -> float:
        return float(self.node.guard_float("", 0))

    def _sympy_(self) -> Any:
        return self.node.expr


def _wrapped(node: Any) -> Any:
    """A symbol around a node; a constant as the number that it is."""
    if node.is_constant():
        return node.constant
    return SymInt(node) if node.is_int() else SymBool(node) if node.is_bool() else SymFloat(node)


def _node_of(own: Any, value: Any) -> Any:
    """The node of an operand, as a node makes it of a plain number; NotImplemented for anything else."""
    if isinstance(value, _Symbol):
        return value.node
    if type(value) is bool:
        return own.wrap_bool(value)
    if type(value) is int:
        return own.wrap_int(value)
    return own.wrap_float(value) if type(value) is float else NotImplemented


def _binary(method: str, swapped: bool) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        node = _node_of(self.node, other)
        if node is NotImplemented:
            return NotImplemented
        left, right = (node, self.node) if swapped else (self.node, node)
        return _wrapped(getattr(left, f"{method}_" if method in ("and", "or") else method)(right))

    return operation


def _unary(method: str) -> Callable[..., Any]:
    return lambda self, *further: _wrapped(getattr(self.node, method)(*further))


for _name in METHODS:
    setattr(_Symbol, f"__{_name}__", _binary(_name, False))
for _name in _REVERSED:
    setattr(_Symbol, f"__r{_name}__", _binary(_name, True))
for _name in _UNARY:
    setattr(_Symbol, f"__{_name}__", _unary(_name))


class SymInt(_Symbol):
    """A whole number of which a node knows.

    Args:
        node: what knows the value.

    Example:
        >>> isinstance(3, torch.SymInt)
        False
    """

    __module__ = "flambeau"

    def __index__(self) -> int:
        return int(self.node.int_())

    def __hash__(self) -> int:
        if self.node.is_nested_int():
            return hash(self.node.nested_int())
        raise TypeError("unhashable type: non-nested SymInt")

    def as_integer_ratio(self) -> tuple[Any, int]:
        """The number over one."""
        return self, 1

    def bit_length(self) -> int:
        """How many bits the number has."""
        return int(self).bit_length()

    def conjugate(self) -> SymInt:
        """The number itself."""
        return self


class SymFloat(_Symbol):
    """A number of which a node knows.

    Args:
        node: what knows the value.

    Example:
        >>> isinstance(1.5, torch.SymFloat)
        False
    """

    __module__ = "flambeau"

    def __hash__(self) -> int:
        return hash(float(self))

    def is_integer(self) -> Any:
        """Whether the number is whole."""
        return float(self).is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        """The number as a fraction."""
        return float(self).as_integer_ratio()

    def conjugate(self) -> SymFloat:
        """The number itself."""
        return self

    def hex(self) -> str:
        """The number in hexadecimal digits."""
        return float(self).hex()


class SymBool(_Symbol):
    """A truth of which a node knows.

    Args:
        node: what knows the value.

    Example:
        >>> isinstance(True, torch.SymBool)
        False
    """

    __module__ = "flambeau"

    def __hash__(self) -> int:
        return hash(bool(self))

    def __sym_not__(self) -> Any:
        return _wrapped(self.node.sym_not())


def sym_int(a: Any) -> Any:
    """A size as an integer, rounded towards zero."""
    return a if isinstance(a, SymInt) else math.trunc(a)


def sym_float(a: Any) -> Any:
    """A size as a float."""
    return a if isinstance(a, SymFloat) else a.__float__()


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two sizes; a float if either is one."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two sizes; a float if either is one."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> Any:
    """The negation of a condition on sizes."""
    return a.__sym_not__() if isinstance(a, SymBool) else not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """One of two values by a condition on sizes."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: t is {type(t)}, f is {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of sizes, which come in one list or one by one."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_sqrt(a: Any) -> float:
    """The square root of a size."""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> Any:
    """A size as it is."""
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Refuse a size that is out of a range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Refuse a number that is to become a size, if it is out of a range."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)
