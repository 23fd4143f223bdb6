"""A graph of ONNX's operators while it is being built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._element_types import onnx_type
from ._sizes import Arithmetic, Axis, Extent, Size, Term, identity
from .errors import SymbolicValueError

INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of the graph."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None = None
    """The sizes, where they are known; those that depend on the inputs are `Size`s."""

    @property
    def rank(self) -> int:
        """How many dimensions it has."""
        assert self.shape is not None, f"the shape of {self.name} is not known"
        return len(self.shape)

    def __float__(self) -> float:
        raise SymbolicValueError("a number that the operator keeps as an attribute depends on the sizes of the inputs")


@dataclass(eq=False, slots=True)
class Node:
    """An operator with its operands."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    domain: str = ""
    name: str = ""
    scope: tuple[str, ...] = ()


Operand = Value | int | float | bool | None
"""What a node is given: a tensor, a number that becomes a constant beside the first tensor, or nothing."""


@dataclass(slots=True)
class Subgraph:
    """A body of `Loop`, `Scan` or `If`: an attribute of a node."""

    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]


@dataclass
class Graph:
    """Nodes in the order in which they run, and the constants that they need."""

    opset: int
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    axes: dict[str, tuple[Value, int]] = field(default_factory=dict)
    """For each dynamic axis an input that has it, and where."""
    domains: dict[str, int] = field(default_factory=dict)
    """Operator sets beside ONNX's own, with their versions."""
    scope: tuple[str, ...] = ()
    tensor_of: Callable[[int], Value] | None = None
    """The current value of a tensor of the trace."""
    _names: dict[str, int] = field(default_factory=dict)
    _constant_names: dict[Any, Value] = field(default_factory=dict)
    _sizes: dict[Any, Value] = field(default_factory=dict)

    # ----- nodes ------------------------------------------------------------------------------------------------------

    def op(self, kind: str, *operands: Operand, dtype: Any = None, domain: str = "", **attributes: Any) -> Value:
        """A node with one result, whose dtype is that of the first tensor unless said."""
        return self.ops(kind, 1, *operands, dtype=dtype, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, count: int, *operands: Operand, dtype: Any = None, domain: str = "", **attributes: Any
    ) -> list[Value]:
        """A node with `count` results."""
        first = next((each for each in operands if isinstance(each, Value)), None)
        beside = FLOAT32 if first is None else first.dtype
        values = [self.operand(each, beside) for each in operands]
        while values and values[-1] is None:
            values.pop()
        name = self.unique("/" + "/".join((*self.scope[-1:], kind)))
        outputs = [f"{name}_output_{position}" for position in range(count)]
        # A trailing underscore tells an attribute called `dtype` from the parameter.
        present = {key.rstrip("_"): value for key, value in attributes.items() if value is not None}
        inputs = ["" if each is None else each.name for each in values]
        self.nodes.append(Node(kind, inputs, outputs, present, domain, name, self.scope))
        return [Value(each, beside if dtype is None else np.dtype(dtype)) for each in outputs]

    def operand(self, given: Operand, dtype: np.dtype[Any]) -> Value | None:
        """A value for an operand; numbers become constants of `dtype`."""
        if given is None or isinstance(given, Value):
            return given
        if isinstance(given, Size):
            return self.cast(self.scalar(given), dtype)
        return self.const(given, dtype)

    def unique(self, name: str) -> str:
        """`name`, with a number if it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        if not count:
            return name
        return self.unique(f"{name}_{count}") if f"{name}_{count}" in self._names else self._taken(f"{name}_{count}")

    def _taken(self, name: str) -> str:
        self._names[name] = 1
        return name

    # ----- constants and sizes ----------------------------------------------------------------------------------------

    def const(self, value: Any, dtype: Any = None) -> Value:
        """A constant; equal ones are one."""
        array = np.asarray(value, None if dtype is None else np.dtype(dtype))
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes()) if array.size <= 64 else id(value)
        found = self._constant_names.get(key)
        if found is None:
            found = Value(self.unique("constant"), array.dtype, array.shape)
            self.constants[found.name] = array
            self._constant_names[key] = found
        return found

    def constant_of(self, value: Value | None) -> np.ndarray[Any, Any] | None:
        """The elements of a value that is a constant of the graph."""
        return None if value is None else self.constants.get(value.name)

    def ints(self, values: Sequence[int]) -> Value:
        """A vector of integers; some may be sizes that are known only when the model runs."""
        if not any(isinstance(each, Size) for each in values):
            return self.const(np.array([int(each) for each in values], np.int64))
        parts = [self._vector(each) for each in values]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def scalar(self, value: int) -> Value:
        """An integer without dimensions."""
        if not isinstance(value, Size):
            return self.const(np.array(value, np.int64))
        return self.op("Squeeze", self._vector(value), self.const([0], INT64))

    def _vector(self, size: int) -> Value:
        """A size as a vector of one element."""
        if not isinstance(size, Size):
            return self.const(np.array([size], np.int64))
        key = identity(size.term)
        found = self._sizes.get(key)
        if found is None:
            found = self._sizes[key] = self._computed(size.term)
        return found

    def _computed(self, term: Term) -> Value:
        outer, self.scope = self.scope, ()
        try:
            if isinstance(term, Arithmetic):
                return self.op(term.operator, self._vector(term.left), self._vector(term.right))
            if isinstance(term, Axis):
                value, dim = self.axes[term.name]
            else:
                assert isinstance(term, Extent)
                assert self.tensor_of is not None, "a graph without a trace has no extents"
                value, dim = self.tensor_of(term.value), term.dim
            return self.op("Shape", value, dtype=INT64, start=dim, end=dim + 1)
        finally:
            self.scope = outer

    # ----- what many converters need ----------------------------------------------------------------------------------

    def cast(self, value: Value, dtype: Any) -> Value:
        """A value in another dtype; itself if it has that."""
        dtype = np.dtype(dtype)
        if value.dtype == dtype:
            return value
        known = self.constant_of(value)
        if known is not None and known.size <= 64:
            return self.const(known.astype(dtype))
        made = self.op("Cast", value, dtype=dtype, to=onnx_type(dtype))
        made.shape = value.shape
        return made

    def reshape(self, value: Value, sizes: Sequence[int]) -> Value:
        """A value in another shape; one size that is not a constant is left to the operator to find out."""
        moving = [position for position, each in enumerate(sizes) if isinstance(each, Size)]
        wanted: list[int] = [int(each) for each in sizes]
        if len(moving) == 1 and 0 not in wanted and -1 not in wanted:
            wanted[moving[0]] = -1
            shape = self.const(np.array(wanted, np.int64))
        else:
            shape = self.ints(sizes)
        made = self.op("Reshape", value, shape, allowzero=1 if 0 in wanted else None)
        made.shape = None if -1 in wanted and not moving else tuple(sizes)
        return made

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """A value with its dimensions in another order."""
        made = self.op("Transpose", value, perm=[int(each) for each in order])
        made.shape = None if value.shape is None else tuple([value.shape[each] for each in order])
        return made

    def unsqueeze(self, value: Value, *dims: int) -> Value:
        """A value with dimensions of size 1 put in."""
        return self.op("Unsqueeze", value, self.const(np.array(dims, np.int64)))

    def squeeze(self, value: Value, *dims: int) -> Value:
        """A value without dimensions of size 1."""
        return self.op("Squeeze", value, self.const(np.array(dims, np.int64)))

    def shape(self, value: Value) -> Value:
        """The sizes of a value as a vector: a constant if they are."""
        return self.op("Shape", value, dtype=INT64) if value.shape is None else self.ints(value.shape)

    def expand(self, value: Value, sizes: Sequence[int]) -> Value:
        """A value repeated along dimensions of size 1."""
        return self.op("Expand", value, self.ints(sizes))

    def slice(self, value: Value, dim: int, start: int, end: int, step: int = 1) -> Value:
        """A part of a dimension."""
        return self.op("Slice", value, self.ints([start]), self.ints([end]), self.ints([dim]), self.ints([step]))

    def flat(self, value: Value) -> Value:
        """All elements in one dimension."""
        return self.op("Reshape", value, self.const([-1], INT64))

    def reduce(self, kind: str, value: Value, dims: Sequence[int] | None, keepdim: bool) -> Value:
        """A reduction, over all dimensions if none are named."""
        axes = None if dims is None else self.const(np.array(list(dims), np.int64))
        if dims is not None and not len(dims):
            return self.op(kind, value, axes, keepdims=1 if keepdim else 0, noop_with_empty_axes=1)
        return self.op(kind, value, axes, keepdims=1 if keepdim else 0)

    def where(self, condition: Value, yes: Operand, no: Operand) -> Value:
        """Elements of one or the other; at least one of them is a tensor."""
        like = yes if isinstance(yes, Value) else no
        assert isinstance(like, Value)
        yes_value, no_value = self.operand(yes, like.dtype), self.operand(no, like.dtype)
        return self.op("Where", condition, yes_value, no_value, dtype=like.dtype)

    def count_up(self, length: int) -> Value:
        """0, 1, 2, ... up to a length."""
        return self.op("Range", self.scalar(0), self.scalar(length), self.scalar(1))
