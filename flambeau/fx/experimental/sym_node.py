"""Numbers with nodes: `SymNode` knows a number and what it was made of; `DynamicInt` marks an integer that varies."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import channels_last, channels_last_3d
from ..._core.geometry.layout import channels_innermost, channels_last_strides, is_dense
from ..._core.names.same_as import same_as
from ..._core.names.symbolic import METHODS
from ..._core.size import contiguous_strides

__all__ = ["DynamicInt", "SymNode", "magic_methods", "method_to_operator"]

_UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "pos": operator.pos, "abs": operator.abs, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round, "sym_not": operator.not_, "is_integer": float.is_integer,
    "sym_float": float, "sym_int": int,
    **{f"sym_{name}": getattr(math, name) for name in
       ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")},
}  # fmt: skip
_FURTHER_BINARY: dict[str, Callable[..., Any]] = {
    "float_pow": operator.pow, "pow_by_natural": operator.pow, "float_truediv": operator.truediv,
    "int_truediv": operator.truediv, "int_floordiv": operator.floordiv, "sym_max": max, "sym_min": min,
    "sym_and": operator.and_, "sym_or": operator.or_, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}  # fmt: skip
"""Methods with names for one type of number, which PyTorch's operators on symbols end in."""
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
        self._expr, self._hint = expr, hint
        self.shape_env, self.pytype, self.constant, self.fx_node = shape_env, pytype, constant, fx_node

    expr: Any = same_as("_expr", "What the number was made of.")
    hint: Any = same_as("_hint", "The number, or None if it is not known.")

    def _value(self) -> Any:
        if self._hint is None:
            raise RuntimeError(f"the number that {self._expr} stands for is not known")
        return self._hint

    def with_shape_env(self, shape_env: Any) -> SymNode:
        """This number in another environment."""
        return SymNode(self._expr, shape_env, self.pytype, self._hint, self.constant, self.fx_node)

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
        return self._hint is not None

    def int_(self) -> int:
        """The whole number that the expression has now."""
        return int(self._value())

    def bool_(self) -> bool:
        """The truth that the expression has now."""
        return bool(self._value())

    def guard_int(self, file: builtins.str, line: int) -> int:
        """The whole number that the expression has now, for code at a place."""
        return self.int_()

    def guard_float(self, file: builtins.str, line: int) -> float:
        """The number that the expression has now, for code at a place."""
        return float(self._value())

    def guard_bool(self, file: builtins.str, line: int) -> bool:
        """The truth that the expression has now, for code at a place."""
        return self.bool_()

    def guard_or_false(self, file: builtins.str, line: int) -> bool:
        """The truth; False if it is not known."""
        return bool(self._hint) if self.has_hint() else False

    def guard_or_true(self, file: builtins.str, line: int) -> bool:
        """The truth; True if it is not known."""
        return bool(self._hint) if self.has_hint() else True

    statically_known_true = guard_or_false
    guard_size_oblivious = expect_true = guard_bool

    def evaluate(self, size_oblivious: bool = False) -> Any:
        """The number, as Python's."""
        return self.pytype(self._value())

    def maybe_as_int(self) -> int | None:
        """The number if it is whole and known."""
        return int(self._hint) if self.is_int() and self.has_hint() else None

    def maybe_as_float(self) -> float | None:
        """The number if it is a float and known."""
        return float(self._hint) if self.is_float() and self.has_hint() else None

    def maybe_as_bool(self) -> bool | None:
        """The truth if it is one and known."""
        return bool(self._hint) if self.is_bool() and self.has_hint() else None

    def nested_int(self) -> None:
        """Which ragged dimension the number is the size of: none."""
        return

    def sym_ite(self, then_val: SymNode, else_val: SymNode) -> SymNode:
        """One of two nodes, by this truth."""
        return _result("sym_ite", lambda truth, one, other: one if truth else other, self, then_val, else_val)

    def sym_sum(self, args: Sequence[SymNode]) -> SymNode:
        """The sum of nodes, of which this is one or not."""
        return _result("sym_sum", lambda *numbers: sum(numbers), *args)

    def is_contiguous(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether a tensor of these sizes and strides lies row by row, without gaps."""
        return _of_layout("is_contiguous", _same_steps(contiguous_strides), sizes, strides)

    def is_channels_last_contiguous_2d(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether pictures of these sizes and strides have their channels innermost, without gaps."""
        return _of_layout("is_channels_last_contiguous_2d", _same_steps(_images_last), sizes, strides)

    def is_channels_last_contiguous_3d(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether volumes of these sizes and strides have their channels innermost, without gaps."""
        return _of_layout("is_channels_last_contiguous_3d", _same_steps(_volumes_last), sizes, strides)

    def is_channels_last_strides_2d(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether the channels of pictures are innermost; there may be gaps."""
        return _of_layout("is_channels_last_strides_2d", _channels_innermost(4), sizes, strides)

    def is_channels_last_strides_3d(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether the channels of volumes are innermost; there may be gaps."""
        return _of_layout("is_channels_last_strides_3d", _channels_innermost(5), sizes, strides)

    def is_non_overlapping_and_dense(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """Whether each element has a place of its own, without gaps."""
        return _of_layout("is_non_overlapping_and_dense", is_dense, sizes, strides)

    def is_non_overlapping_and_dense_indicator(self, sizes: Sequence[SymNode], strides: Sequence[SymNode]) -> SymNode:
        """1 if each element has a place of its own, without gaps, else 0."""
        return _of_layout(
            "is_non_overlapping_and_dense_indicator", lambda size, steps: int(is_dense(size, steps)), sizes, strides
        )

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
        """The expression as a text."""
        return f"{self._expr}"

    _graph_repr = str

    def __repr__(self) -> builtins.str:
        return f"SymNode({self._expr}, shape_env={self.shape_env}, pytype={self.pytype}, hint={self._hint})"


def _result(name: str, function: Callable[..., Any], *parts: Any) -> SymNode:
    """The node of what a function makes of the numbers of nodes."""
    known = [getattr(each, "hint", each) for each in parts]
    hint = None if any(each is None for each in known) else function(*known)
    first = next(each for each in parts if isinstance(each, SymNode))
    text = ", ".join(repr(getattr(each, "expr", each)) for each in parts)
    return SymNode(f"{name}({text})", first.shape_env, type(hint) if hint is not None else first.pytype, hint)


Layout = tuple[int, ...]


def _of_layout(
    name: str, question: Callable[[Layout, Layout], Any], sizes: Sequence[SymNode], strides: Sequence[SymNode]
) -> SymNode:
    """The node of the answer to a question about sizes and strides."""
    return _result(name, lambda *numbers: question(numbers[: len(sizes)], numbers[len(sizes) :]), *sizes, *strides)


def _same_steps(wanted: Callable[[Layout], Layout | None]) -> Callable[[Layout, Layout], bool]:
    """Whether strides are those wanted, wherever a dimension has more than one place."""

    def question(sizes: Layout, strides: Layout) -> bool:
        expected = wanted(sizes)
        if expected is None:
            return False
        return 0 in sizes or all(a == b for a, b, n in zip(strides, expected, sizes, strict=True) if n != 1)

    return question


def _images_last(sizes: Layout) -> Layout | None:
    return channels_last_strides(sizes, channels_last) if len(sizes) == 4 else None


def _volumes_last(sizes: Layout) -> Layout | None:
    return channels_last_strides(sizes, channels_last_3d) if len(sizes) == 5 else None


def _channels_innermost(rank: int) -> Callable[[Layout, Layout], bool]:
    return lambda sizes, strides: len(sizes) == rank and channels_innermost(sizes, strides)


def _binary(name: str, function: Callable[..., Any]) -> Callable[..., SymNode]:
    def operation(self: SymNode, other: Any) -> SymNode:
        return _result(name, function, self, other)

    return operation


def _unary(name: str, function: Callable[..., Any]) -> Callable[..., SymNode]:
    def operation(self: SymNode, ndigits: Any = None) -> SymNode:
        return _result(name, function, self, *(() if ndigits is None else (ndigits,)))

    return operation


for _name, _function in (METHODS | _FURTHER_BINARY).items():
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
