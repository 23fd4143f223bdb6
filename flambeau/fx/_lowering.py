"""Traces of ops, made a graph of operators.

The first trace says what is done. Others, of the same program at other sizes, say which integers depend on sizes: these
become arithmetic on the sizes of inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.kind import Kind
from .._core.names.symbolic import sym_max, sym_min
from .._core.tensor import Tensor
from .._dispatch.factory import constant
from .._dispatch.public.catalogue import METHODS
from .._dispatch.public.overloads import OpOverload, overload_named
from .._ops.create.constants import from_numpy
from .._torch._subclasses.fake_tensor import FakeTensorMode, UnsupportedFakeTensorException
from ..compiler.capture.operators import as_operator
from ..compiler.capture.trace import Call, Trace
from ..compiler.program.items import Value
from ..onnx._sizes import Arithmetic, Axis, Extent, Fitting, Number, Size
from .graph import Graph
from .node import Node, map_aggregate

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.floordiv, "Min": sym_min,
    "Max": sym_max,
}  # fmt: skip


_ON_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "Mul": operator.mul, "Div": operator.truediv, "Over": operator.truediv, "Add": operator.add,
}  # fmt: skip
"""The operators of a number's form."""

_MADE_BY_ELEMENTS = frozenset(("packed",))
"""Ops whose arguments were read from elements before: the lengths of sequences."""


class DataDependent(RuntimeError):
    """The program decides in Python what to do next, by elements of a tensor that depends on its inputs."""


class SizeDependent(RuntimeError):
    """The program does something else at other sizes, in a way that no graph can follow."""


class AxisPlace(NamedTuple):
    """A dimension that tells the size of an axis: it is `factor` times as large, and `shift` more."""

    node: Node
    dim: int
    factor: int = 1
    shift: int = 0


class Lowering:
    """Builds a graph of what traces of one program did."""

    def __init__(self, traces: Sequence[Trace], axes: Mapping[str, tuple[int, ...]], graph: Graph) -> None:
        self.traces, self.graph = traces, graph
        self.fitting = Fitting(dict(axes))
        self.nodes: dict[int, Node] = {}
        """The nodes of tensors, by their numbers in the trace."""
        self.axes: dict[str, AxisPlace] = {}
        """Of each axis an input that has it, and where."""
        self.constant: Callable[[Tensor], Node] = self._unknown
        """What makes a node of a tensor that came from outside."""
        self.finds_ranges = True
        """Whether integers by equal steps are a range, where a trace cannot tell how they were made."""
        self._sizes: dict[Any, Node] = {}
        self._tainted: set[int] = set()
        self._numbers: dict[int, int] = {}
        """The numbers of tensors, by their identities, as the call being lowered knows them."""
        self._used = {each.number for call in traces[0].calls for each in _refs(call.args)}
        self._fakes = FakeTensorMode()

    @staticmethod
    def _unknown(tensor: Tensor) -> Node:
        raise RuntimeError(f"a tensor of shape {list(tensor.shape)} comes from nowhere")

    def note_input(self, number: int, node: Node, depends: bool = True) -> None:
        """Say which node a tensor from outside is, and whether it is another in each call."""
        self.nodes[number] = node
        self._describe(number, node)
        if depends:
            self._tainted.add(number)

    def lower(self, outputs: Iterable[Tensor]) -> None:
        """Make nodes of all calls, and of what the program returns."""
        self._used.update(map(self.traces[0].number_of, outputs))
        lengths = {len(trace.calls) for trace in self.traces}
        if len(lengths) > 1:
            raise SizeDependent("the program does different things at different sizes of its dynamic dimensions")
        for position, call in enumerate(self.traces[0].calls):
            others = [trace.calls[position] for trace in self.traces[1:]]
            if any(other.op != call.op for other in others):
                raise SizeDependent(
                    f"at other sizes of its dynamic dimensions the program runs {others[0].op.name} in place of "
                    f"{call.op.name}{call.where()}"
                )
            self._call(call, others)
        self._join_changes()

    def returned(self, runs: Sequence[Sequence[Any]]) -> list[Any]:
        """Make nodes of all calls and of what the runs returned, leaf by leaf; values that never differ stay values."""
        self.lower([each for each in runs[0] if isinstance(each, Tensor)])
        number_of = self.traces[0].number_of
        return [
            self.node_of(number_of(each[0])) if isinstance(each[0], Tensor) else self._size(self._merged(each, ()))
            for each in zip(*runs, strict=True)
        ]

    def _join_changes(self) -> None:
        """An operator whose result is copied into its first argument at once is its in-place form: `add_`."""
        copy = overload_named("aten", "copy_", "default")
        for node in list(self.graph.nodes):
            if node.target is not copy or len(node.args) != 2 or node.prev is not node.args[1]:
                continue
            made, func = node.prev, node.prev.target
            if not isinstance(func, OpOverload) or made.args[:1] != node.args[:1] or len(made.users) > 1:
                continue
            if func.namespace == "aten" and f"{func._name}_" in METHODS:
                node.target = overload_named("aten", f"{func._name}_", func._overloadname)
                node.args, node.kwargs = made.args, made.kwargs
                node._rename(f"{func._name}_")
                self.graph.erase_node(made)

    def _call(self, call: Call, others: Sequence[Call]) -> None:
        refs = [each.number for each in _refs(call.args)]
        depends = any(number in self._tainted for number in refs)
        if call.op.reads or call.op.name in _MADE_BY_ELEMENTS:
            if depends:
                raise DataDependent(
                    f"Could not guard on data-dependent expression: the program reads elements by {call.op.name}"
                    f"{call.where()}, and these depend on its inputs. What it does next may depend on them"
                )
            return
        if call.op is constant:
            self._name_results(self._constant([call, *others]), call.results, depends)
            return
        near = [size for number in refs for size in self._shape(number)]
        args = [self._merged([call.args[i], *(o.args[i] for o in others)], near) for i in range(len(call.args))]
        tensors = _replaced(tuple(args), self._tensor)
        func, positional, kwargs, only_first = as_operator(call.op, tensors)
        if only_first and any(each.number in self._used for each in _refs(call.results[1:])):
            # The operator keeps to itself what a later op wants: the statistics of a batch.
            func, positional, kwargs, only_first = (
                overload_named("flambeau", call.op.name, "default"),
                tensors,
                {},
                False,
            )
        node = self._made(func, self._argument(positional), self._argument(kwargs))
        if only_first:
            self._name_results(node, call.results[0], depends)
        else:
            self._name_results(node, call.results, depends)
        if func._name.endswith("_") and func.namespace == "aten" and isinstance(call.args[0], Value):
            self.nodes[call.args[0].number] = node  # it returns what it changes
        for written in call.op.writes:
            if depends and isinstance(call.args[written], Value):
                self._tainted.add(call.args[written].number)

    def _constant(self, calls: Sequence[Call]) -> Node:
        """What makes a tensor of data from Python: a copy of a constant, or a range, which may depend on sizes."""
        arrays = [each.args[0] for each in calls]
        dtype = calls[0].args[1].dtype
        rows = [each.ravel() for each in arrays if each.ndim and each.size == max(each.shape)]
        differ = any(each.shape != arrays[0].shape for each in arrays)
        if len(rows) == len(arrays) and _is_range(rows) and (differ or (self.finds_ranges and arrays[0].ndim == 1)):
            start, step = int(rows[0][0]), int(rows[0][1]) - int(rows[0][0])
            end = self._size(self._merged([start + step * len(each) for each in rows], ()))
            made = self._made(
                overload_named("aten", "arange", "start_step"), (start, end, step), {"dtype": dtype, "device": "cpu"}
            )
            if arrays[0].ndim == 1:
                return made
            shape = self._argument(self._merged([list(each.shape) for each in arrays], ()))
            return self._made(overload_named("aten", "view", "default"), (made, shape), {})
        if any(each.shape != arrays[0].shape for each in arrays):
            raise SizeDependent(f"data from Python has another shape at other sizes{calls[0].where()}")
        if not arrays[0].ndim:
            return self._scalar([each.item() for each in arrays], dtype)
        if any(not _is_same(arrays[0], each) for each in arrays[1:]):
            elements = zip(*[each.ravel().tolist() for each in arrays], strict=True)
            scalars = [self._scalar(each, dtype) for each in elements]
            row = self._made(overload_named("aten", "stack", "default"), (scalars,), {})
            return self._made(overload_named("aten", "reshape", "default"), (row, list(arrays[0].shape)), {})
        copied = self._copy(from_numpy(arrays[0]).to(dtype))
        return self._made(overload_named("aten", "detach_", "default"), (copied,), {})

    def _scalar(self, values: Sequence[Any], dtype: Any) -> Node:
        """A tensor of one number, which may depend on sizes."""
        number = self._size(self._merged(values, (), lambda each: float(dtype.numpy.type(each))))
        return self._made(overload_named("aten", "scalar_tensor", "default"), (number,), {"dtype": dtype})

    def _copy(self, data: Tensor) -> Node:
        """A copy of data from Python, which a later call may change."""
        made = self.constant(data)
        made.meta["val"] = self._fakes.from_tensor(data)
        return self._made(overload_named("aten", "lift_fresh_copy", "default"), (made,), {})

    def _made(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """A node that has the name of its operator, whatever the overload."""
        return self.graph.call_function(func, args, kwargs, name=func._name)

    # ----- integers ---------------------------------------------------------------------------------------------

    def _shape(self, number: int) -> tuple[int, ...]:
        shapes = [trace.shapes[number] for trace in self.traces]
        return shapes[0] if len({len(each) for each in shapes}) > 1 else self.fitting.note_shape(number, shapes)

    def _merged(self, values: Sequence[Any], near: Sequence[int], rounded: Callable[[float], float] = float) -> Any:
        """One argument of several traces: what differs is a function of sizes, `rounded` before it was seen."""
        first = values[0]
        if isinstance(first, Value) or len(values) == 1:
            return first
        if type(first) in (list, tuple):
            if len({len(each) for each in values}) > 1:
                raise SizeDependent("a list of arguments has other lengths at other sizes of the dynamic dimensions")
            return type(first)([self._merged(list(each), near) for each in zip(*values, strict=True)])
        if all(_is_same(first, each) for each in values[1:]):
            return first
        found: Any = None
        if type(first) is int:
            found = self.fitting.size(tuple(values), near)
        elif type(first) is float:
            found = self.fitting.number(values, near, rounded)
        if found is None:
            kind = {int: "an integer", float: "a number"}.get(type(first), "a value")
            seen = ", ".join(map(str, values))
            raise SizeDependent(f"how {kind} that was {seen} follows from the dynamic dimensions is unknown")
        return found

    def _number(self, number: Number) -> Node:
        """The node that computes a float from a size."""
        operation, constant, size, power = number.form
        base = self._size(size)
        if power != 1:
            base = self.graph.call_function(operator.pow, (base, power))
        sides = (constant, base) if operation == "Div" else (base, constant)
        made = self.graph.call_function(_ON_FLOATS[operation], sides)
        made.meta["val"] = float(number)
        return made

    def _size(self, size: Any) -> Any:
        """The node that computes a size, or a float that is made of one."""
        if isinstance(size, Number):
            return self._number(size)
        if not isinstance(size, Size):
            return size
        term = size.term
        if term in self._sizes:
            return self._sizes[term]
        made: Node
        if isinstance(term, Arithmetic):
            left, right = self._size(term.left), self._size(term.right)
            made = self.graph.call_function(_ARITHMETIC[term.operator], (left, right))
        else:
            assert isinstance(term, (Axis, Extent))
            place = self.axes[term.name] if isinstance(term, Axis) else AxisPlace(self.nodes[term.value], term.dim)
            made = self._made(overload_named("aten", "sym_size", "int"), (place.node, place.dim), {})
            if place.shift:
                made = self.graph.call_function(operator.sub, (made, place.shift))
            if place.factor != 1:
                made = self.graph.call_function(operator.floordiv, (made, place.factor))
        made.meta["val"] = int(size)
        self._sizes[term] = made
        return made

    # ----- tensors ----------------------------------------------------------------------------------------------

    def node_of(self, number: int) -> Node:
        """The node of a tensor of the trace."""
        if number not in self.nodes:
            self._check_outside(number)
            self.nodes[number] = node = self.constant(self.traces[0].outside[number])
            self._describe(number, node)
        return self.nodes[number]

    def _check_outside(self, number: int) -> None:
        """A tensor that was made outside of the ops can only be a constant if it is the same in each run."""
        tensor = self.traces[0].outside[number]
        for trace in self.traces[1:]:
            other = trace.outside.get(number)
            if other is tensor:
                continue
            if other is None or not _is_same(self.traces[0].original(number), trace.original(number)):
                raise SizeDependent("a tensor that is made outside of the ops differs at other sizes of the inputs")

    def _tensor(self, ref: Value) -> Tensor:
        """A tensor of the trace, which from now on stands for this number: `transpose_` gives it another later."""
        tensor = self.traces[0].tensors[ref.number]
        self._numbers[id(tensor)] = ref.number
        return tensor

    def _argument(self, value: Any) -> Any:
        def convert(each: Any) -> Any:
            if isinstance(each, Tensor):
                number = self._numbers.get(id(each))
                return self.node_of(self.traces[0].number_of(each) if number is None else number)
            if isinstance(each, np.ndarray):  # positions that were a list
                return self._copy(from_numpy(each))
            if isinstance(each, Kind):
                raise NotImplementedError(f"an op takes {each!r}, which no graph can hold")
            return self._size(each)

        return map_aggregate(value, convert)

    def _name_results(self, node: Node, results: Any, depends: bool) -> None:
        if isinstance(results, Value):
            self.nodes[results.number] = node
            self._describe(results.number, node)
            if depends:
                self._tainted.add(results.number)
        elif isinstance(results, list):
            for position, each in enumerate(results):
                if isinstance(each, (Value, list)):
                    self._name_results(self.graph.call_function(operator.getitem, (node, position)), each, depends)

    def _describe(self, number: int, node: Node) -> None:
        try:
            node.meta["val"] = self._fakes.from_tensor(self.traces[0].tensors[number])
        except UnsupportedFakeTensorException:
            return  # of a kind that has no form without data


def _is_range(arrays: Sequence[Any]) -> bool:
    """Whether data are integers from one on, by equal steps, in every trace."""
    return all(
        each.ndim == 1 and each.dtype.kind == "i" and len(each) > 1 and len(set(np.diff(each).tolist())) == 1
        and each[0] == arrays[0][0] and each[1] == arrays[0][1]
        for each in arrays
    )  # fmt: skip


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arguments are equal, and not only as numbers: `True` is not 1, NaN is NaN."""
    if isinstance(one, np.ndarray):
        equal_nan = one.dtype.kind in "fc"
        return one.shape == other.shape and one.dtype == other.dtype and np.array_equal(one, other, equal_nan=equal_nan)
    return type(one) is type(other) and (one == other or one != one)


def _replaced(value: Any, fn: Callable[[Value], Any]) -> Any:
    """Arguments with something else in the places of tensors."""
    if isinstance(value, Value):
        return fn(value)
    return type(value)([_replaced(each, fn) for each in value]) if type(value) in (list, tuple) else value


def _refs(args: Any) -> list[Value]:
    found: list[Value] = []
    for each in args:
        if isinstance(each, Value):
            found.append(each)
        elif type(each) in (list, tuple):
            found += _refs(each)
    return found
