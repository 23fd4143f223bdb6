"""Capture: the ops that a piece of Python runs, written down, so that they can be run again without that Python."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.tensor import Tensor
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op


class Value(NamedTuple):
    """The place of a tensor in a capture."""

    number: int


class Call(NamedTuple):
    """One op that ran: arguments and results are as they were, but with a `Value` in the place of each tensor."""

    op: Op
    args: tuple[Any, ...]
    results: Any


class Capture(Interpreter):
    """Runs ops as usual and writes them down.

    A tensor is known by its array: what autograd saves and unpacks is another object over the same one. Tensors that
    were there before are `inputs`. What comes from nowhere, an argument that neither was there before nor is the result
    of an op, is in `strays`: there should be none. Where Python looked at elements (`reads`), what it did next may have
    depended on them: a replay that finds others there refuses to go on.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.inputs: dict[int, Tensor] = {}
        """Tensors that were there before, by the numbers of their values."""
        self.strays: list[tuple[str, Tensor]] = []
        self.before: list[Tensor] = []
        """Every tensor that was there when the capture began."""
        self.tensors: dict[int, Tensor] = {}
        """A tensor for each value."""
        self._values: dict[int, Value] = {}
        self._known: set[int] = set()

    def __enter__(self) -> Any:
        self.before = [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
        self._known = {id(each._array) for each in self.before}
        return super().__enter__()

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        noted = tuple([self._note(op, each) for each in args])
        results = op(*args)
        self.calls.append(Call(op, noted, self._made(results)))
        return results

    @property
    def reads(self) -> list[Call]:
        """The calls by which Python looked at elements."""
        return [each for each in self.calls if each.op.reads]

    def _note(self, op: Op, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._value_of(op, value)
        if type(value) in (list, tuple):
            return type(value)([self._note(op, each) for each in value])
        return value

    def _value_of(self, op: Op, tensor: Tensor) -> Value:
        found = self._values.get(id(tensor._array))
        if found is None:
            found = self._new(tensor)
            self.inputs[found.number] = tensor
            if id(tensor._array) not in self._known:
                self.strays.append((op.name, tensor))
        return found

    def _made(self, results: Any) -> Any:
        if isinstance(results, Tensor):
            return self._values.get(id(results._array)) or self._new(results)
        if type(results) in (list, tuple):
            return [self._made(each) for each in results]
        return results

    def _new(self, tensor: Tensor) -> Value:
        value = self._values[id(tensor._array)] = Value(len(self._values))
        self.tensors[value.number] = tensor._kind.tensor_from_parts(tensor._parts())  # no other array gets its address
        return value

    def replay(self) -> dict[int, Tensor]:
        """Run the ops again, on the inputs as they are now; the tensors by the numbers of their values."""
        tensors = dict(self.inputs)
        for op, args, results in self.calls:
            found = op(*[_filled(each, tensors) for each in args])
            if op.reads and not _same(found, results):
                raise RuntimeError(
                    f"replay: the captured program looked at a tensor by {op.name} and found {results}; now there is "
                    f"{found}. What it did next may have depended on that: capture it again."
                )
            _assign(results, found, tensors)
        return tensors


def _same(found: Any, before: Any) -> bool:
    return np.array_equal(found, before, equal_nan=np.asarray(found).dtype.kind in "fc")


def _filled(value: Any, tensors: dict[int, Tensor]) -> Any:
    if type(value) is Value:
        return tensors[value.number]
    if type(value) in (list, tuple):
        return type(value)([_filled(each, tensors) for each in value])
    return value


def _assign(places: Any, results: Any, tensors: dict[int, Tensor]) -> None:
    if type(places) is Value:
        tensors[places.number] = results
    elif type(places) is list:
        for place, result in zip(places, results, strict=True):
            _assign(place, result, tensors)
