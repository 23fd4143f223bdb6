"""Capture: the ops that a piece of Python runs, written down, so that they can be run again without that Python."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from ..._core.process.caller import calling_place
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..program.items import Call, Program, Value
from ..program.reads import differs
from .values import ValueRecorder

__all__ = ["Call", "Capture", "Value"]


class Capture(ValueRecorder):
    """Runs ops as usual and writes them down.

    Tensors that were there before are `inputs`. What comes from nowhere, an argument that neither was there before nor
    is the result of an op, is in `strays`: there should be none. Where Python looked at elements (`reads`), what it did
    next may have depended on them: a replay that finds others there refuses to go on.
    """

    repeats = True

    def __init__(self) -> None:
        super().__init__()
        self.program = Program()
        self.strays: list[tuple[str, Tensor]] = []
        self.before: list[Tensor] = []
        """Every tensor that was there when the capture began."""
        self._there: set[int] = set()
        """The identities of the arrays that were there."""

    def __enter__(self) -> Any:
        self.before = [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
        self._there = {id(each._array) for each in self.before}
        return super().__enter__()

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        noted = self._noted(op, tuple(args))
        return self._write(op, args, noted, op(*args))

    def _write(self, op: Op, args: Sequence[Any], noted: tuple[Any, ...], results: Any) -> Any:
        """Write an op down that has run."""
        place, position = calling_place(), len(self.program.items)
        made = self._made(results)
        call = Call(op, noted, made, self._example(tuple(args)), self._example(results), place, position)
        self.program.items.append(call)
        return results

    def _example(self, value: Any) -> Any:
        """An argument or a result, as it is kept beside its value."""
        return value

    @property
    def calls(self) -> list[Call]:
        """The ops that ran."""
        return [each for each in self.program.items if isinstance(each, Call)]

    @property
    def inputs(self) -> dict[int, Tensor]:
        """Tensors that were there before, by the numbers of their values."""
        return self.program.inputs

    @property
    def reads(self) -> list[Call]:
        """The calls by which Python looked at elements."""
        return [each for each in self.calls if each.op.reads]

    def _given(self, op: Op, tensor: Tensor) -> Value:
        """The value of a tensor that no op has made."""
        if id(tensor._array) not in self._there:
            self.strays.append((op.name, tensor))
        return self.new_input(tensor)

    def new_input(self, tensor: Tensor) -> Value:
        """Let a tensor be one of the inputs."""
        value = self.new_value(tensor)
        self.program.inputs[value.number] = tensor
        return value

    def replay(self) -> dict[int, Tensor]:
        """Run the ops again, on the inputs as they are now; the tensors by the numbers of their values."""
        tensors = dict(self.inputs)
        for call in self.calls:
            found = call.op(*[_filled(each, tensors) for each in call.args])
            if call.op.reads and differs(found, call.made):
                raise RuntimeError(
                    f"replay: the captured program looked at a tensor by {call.op.name} and found {call.made}; now "
                    f"there is {found}. What it did next may have depended on that: capture it again."
                )
            _assign(call.results, found, tensors)
        return tensors


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
