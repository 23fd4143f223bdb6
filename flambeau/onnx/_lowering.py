"""From traces to a graph: every op by its converter, writing done without writing, sizes as functions of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._dispatch.factory import constant
from ..compiler.capture.trace import Call, Run
from ..compiler.program import items
from ._constants import constant_of_sizes
from ._converters import CONVERTERS, Result, Unsupported, convert_steps, has_converter
from ._graph import Graph, Value
from ._sizes import Fitting, product
from .errors import OnnxExporterError, SymbolicValueError, UnsupportedOperatorError


class Repeated(NamedTuple):
    """A list of equal integers whose length depends on the inputs, such as the batch of each step of a sequence."""

    each: int
    length: int


class _Window(NamedTuple):
    """How a view is made of its base: ops with their arguments, and which of their results is meant."""

    base: int
    steps: tuple[tuple[Call, tuple[Any, ...], int | None], ...]


_SAME_ORDER = {"view", "reshape_alias", "unsafe_view", "unsqueeze", "squeeze_dim", "squeeze_dims", "squeeze_all",
               "alias", "detach"}  # fmt: skip
"""Views whose elements stand in the order of the base's."""


class Lowering:
    """Several traces of one model, of which the first says what is done and the others what depends on sizes."""

    def __init__(
        self, runs: Sequence[Run], axes: Mapping[str, tuple[int, ...]], graph: Graph,
        own: Mapping[str, Callable[..., Any]],
    ) -> None:  # fmt: skip
        self.traces = [each.trace for each in runs]
        self.fitting = Fitting(dict(axes))
        self.graph = graph
        graph.tensor_of = self.value
        self.own = own
        """The user's converters, which come first."""
        self._values: dict[int, Value] = {}
        self._windows: dict[int, _Window] = {}
        self._versions: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._names: dict[int, str] = {}
        self._turned: dict[str, Value] = {}

    # ----- tensors ----------------------------------------------------------------------------------------------------

    def shape(self, number: int, near: Sequence[int] = ()) -> tuple[int, ...]:
        """The sizes of a tensor of the trace, which may be functions of the sizes `near`."""
        found = self._shapes.get(number)
        if found is None:
            shapes = [each.shapes[number] for each in self.traces]
            if len({len(each) for each in shapes}) > 1:
                raise SymbolicValueError("a tensor has another number of dimensions at other sizes of the inputs")
            found = self._shapes[number] = self.fitting.note_shape(number, shapes, near)
        return found

    def dtype(self, number: int) -> np.dtype[Any]:
        """The dtype of a tensor of the trace."""
        found: np.dtype[Any] = self.traces[0].tensors[number]._array.dtype
        return found

    def is_input(self, number: int, name: str) -> Value:
        """Make a tensor of the trace an input of the graph."""
        value = self._values[number] = Value(name, self.dtype(number), self.shape(number))
        return value

    def is_called(self, number: int, name: str) -> None:
        """Give a tensor from outside, a parameter, its name in the graph."""
        self._names[number] = name

    def value(self, number: int) -> Value:
        """What a tensor of the trace holds now."""
        window = self._windows.get(number)
        if window is not None and self._seen[number] != self._versions.get(window.base, 0):
            self._seen[number] = self._versions[window.base]
            self._values[number] = self._through(window, self.value(window.base))
        found = self._values.get(number)
        if found is None:
            found = self._values[number] = self._from_outside(number)
        return found

    def _from_outside(self, number: int) -> Value:
        if number not in self.traces[0].outside:
            raise OnnxExporterError("the model uses a tensor that no op has made: it was changed outside of Flambeau")
        arrays = [each.original(number) for each in self.traces if number in each.outside]
        array = arrays[0]
        if len(arrays) < len(self.traces) or any(each.shape != array.shape for each in arrays):
            raise SymbolicValueError("a tensor that is made outside of the ops has another shape at other sizes")
        name = self.graph.unique(self._names.get(number, "lifted_tensor"))
        self.graph.constants[name] = array
        return Value(name, array.dtype, array.shape)

    def _through(self, window: _Window, value: Value) -> Value:
        for call, args, position in window.steps:
            made = self._convert(call, (value, *args[1:]))
            value = made if position is None else made[position]
            result = call.results if position is None else call.results[position]
            value.shape = self.shape(result.number)
        return value

    def write(self, number: int, content: Value) -> None:
        """Let a tensor of the trace hold something else, and with it all that share its memory."""
        window = self._windows.get(number)
        if window is not None:
            content = self._base_with(window, content)
            number = window.base
        content.shape = self.shape(number)
        self._values[number] = content
        self._versions[number] = self._versions.get(number, 0) + 1

    def _base_with(self, window: _Window, content: Value) -> Value:
        """The base of a view after the view was overwritten."""
        g, sizes = self.graph, self.shape(window.base)
        if all(call.op.name in _SAME_ORDER for call, _, _ in window.steps):
            return g.reshape(content, sizes)
        base = self.value(window.base)
        places = g.reshape(g.count_up(product(sizes)), sizes)
        places.shape = sizes
        inside = self._through(window, places)
        flat = g.op("ScatterElements", g.flat(base), g.flat(inside), g.flat(content), axis=0, dtype=base.dtype)
        return g.reshape(flat, sizes)

    # ----- calls ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Convert every call of the traces."""
        calls = [each.calls for each in self.traces]
        for together in zip(*calls, strict=False):
            self._same_op(together)
            try:
                self._lower(together)
            except Unsupported as error:
                raise self._error(together[0], str(error)) from error
            except SymbolicValueError as error:
                raise SymbolicValueError(f"{together[0].op.name}{together[0].where()}: {error}") from error
        if len({len(each) for each in calls}) > 1:
            longest = max(calls, key=len)
            self._differs(longest[min(len(each) for each in calls)])

    def _same_op(self, together: Sequence[Call]) -> None:
        if len({id(each.op) for each in together}) > 1:
            self._differs(together[0])

    def _differs(self, call: Call) -> None:
        raise OnnxExporterError(
            f"the model runs other ops when its dynamic axes have other sizes, first at {call.op.name}{call.where()}. "
            "A loop over a dynamic axis, or a decision by its size, cannot be exported: make that axis static."
        )

    def _error(self, call: Call, reason: str) -> OnnxExporterError:
        return OnnxExporterError(f"{call.op.name} cannot be exported: {reason}{call.where()}")

    def _lower(self, together: Sequence[Call]) -> None:
        call, g = together[0], self.graph
        g.scope = call.scope
        near = [size for number in _numbers(call.args) for size in self.shape(number)]
        if call.op is constant:
            arrays = [each.args[0] for each in together]
            shape = self.shape(call.results.number)
            self._set(call.results.number, constant_of_sizes(g, self.fitting, arrays, shape))
            return
        args = tuple([self._merged(each, near) for each in zip(*[each.args for each in together], strict=True)])
        for number in _numbers(call.results if type(call.results) is list else [call.results]):
            self.shape(number, near)
        if call.op.reads:  # Python has the value now; what it makes of it is compared where it is used
            return
        made = self._convert(call, args)
        if call.op.writes:
            contents = made if isinstance(made, (tuple, list)) else (made,)
            for position, content in zip(call.op.writes, contents, strict=True):
                self.write(call.args[position].number, content)
            return
        results = call.results if type(call.results) is list else [call.results]
        values = made if isinstance(made, (tuple, list)) else [made]
        for position, (result, value) in enumerate(zip(results, values, strict=False)):
            if value is not None:
                self._set(result.number, value)
            if call.op.makes_windows and not call.op.name.endswith("_copy"):
                self._note_window(result.number, call, args, position if type(call.results) is list else None)
        if call.op.name in ("t", "transpose") and isinstance(args[0], Value) and args[0].rank == 2:
            self._turned[values[0].name] = args[0]

    def _set(self, number: int, value: Value) -> None:
        value = Value(value.name, self.dtype(number), self.shape(number)) if value.shape is not None else value
        value.dtype, value.shape = self.dtype(number), self.shape(number)
        self._values[number] = value

    def _note_window(self, number: int, call: Call, args: tuple[Any, ...], position: int | None) -> None:
        source = call.args[0].number
        if source == number:
            return
        known = self._windows.get(source)
        steps = (*(known.steps if known else ()), (call, args, position))
        self._windows[number] = _Window(known.base if known else source, steps)
        self._seen[number] = self._versions.get(self._windows[number].base, 0)

    def _convert(self, call: Call, args: Sequence[Any]) -> Any:
        convert = self.own.get(call.op.name) or CONVERTERS.get(call.op.name)
        if convert is None and not has_converter(call.op.name):
            raise UnsupportedOperatorError(f"{call.op.name} has no converter to ONNX{call.where()}")
        results = call.results if type(call.results) is list else [call.results]
        numbers = [each.number for each in results if isinstance(each, items.Value)]
        numbers += [call.args[position].number for position in call.op.writes]
        known = Result(
            call.op.name, [self.dtype(each) for each in numbers], [self.shape(each) for each in numbers],
            lambda value: self._turned.get(value.name),
        )  # fmt: skip
        if convert is None:
            return convert_steps(call.op, self.graph, known, args)
        return convert(self.graph, known, *args)

    # ----- arguments --------------------------------------------------------------------------------------------------

    def _merged(self, seen: Sequence[Any], near: Sequence[int]) -> Any:
        """One argument of a call, from what it was in each run."""
        first = seen[0]
        if isinstance(first, items.Value):
            if any(each != first for each in seen):
                raise SymbolicValueError("at other sizes of the inputs it is given another tensor")
            return self.value(first.number)
        if type(first) in (list, tuple):
            if len({len(each) for each in seen}) > 1:
                return self._repeated(seen, near)
            return type(first)([self._merged(each, near) for each in zip(*seen, strict=True)])
        if type(first) is int:
            size = self.fitting.size(tuple(seen), near)
            if size is None:
                raise SymbolicValueError(
                    f"the number {first} becomes {', '.join(map(str, seen[1:]))} at other sizes of the inputs, in a "
                    "way that the exporter cannot express"
                )
            return size
        if isinstance(first, np.ndarray):
            if any(each.shape != first.shape or not np.array_equal(each, first) for each in seen):
                raise SymbolicValueError("positions that Python computed depend on the sizes of the inputs")
            return self.graph.const(first)
        if isinstance(first, float) and any(each != first for each in seen) and first == first:
            return self._number(seen, near)
        return first

    def _number(self, seen: Sequence[float], near: Sequence[int]) -> Value:
        """A number that is made of a size: multiplied or divided by it, or by its root."""
        found, g = self.fitting.number(seen, near), self.graph
        if found is None:
            others = ", ".join(f"{each:g}" for each in seen[1:])
            raise SymbolicValueError(f"the number {seen[0]:g} becomes {others} at other sizes of the inputs")
        form = found.form
        base = g.cast(g.scalar(form.size), np.float64)
        base = base if form.power == 1 else g.op("Sqrt", base)
        base = g.op("Reciprocal", base) if form.power < 0 else base
        constant = g.const(form.constant, np.float64)
        if form.operator == "Over":
            return g.op("Div", base, constant)
        return g.op(form.operator, constant, base)

    def _repeated(self, seen: Sequence[Sequence[Any]], near: Sequence[int]) -> Repeated:
        if any(len(set(each)) != 1 or type(each[0]) is not int for each in seen):
            raise SymbolicValueError("a list of numbers has another length at other sizes of the inputs")
        item = self.fitting.size(tuple(each[0] for each in seen), near)
        count = self.fitting.size(tuple(len(each) for each in seen), near)
        if item is None or count is None:
            raise SymbolicValueError("a list of numbers depends on the sizes of the inputs in an unknown way")
        return Repeated(item, count)


def _numbers(args: Any) -> list[int]:
    found = []
    for each in args:
        if isinstance(each, items.Value):
            found.append(each.number)
        elif type(each) in (list, tuple):
            found += _numbers(each)
    return found
