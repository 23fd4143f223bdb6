"""Recording a call with everything in it: what each op was given and what it made, kept as it was then."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._core.generator import Generator
from ..._core.tensor import Tensor
from ..._dispatch.factory import Factory
from ..._dispatch.op import Op
from ..capture.guards import State
from ..capture.new_objects import Made
from ..capture.recorder import Recorder
from ..capture.watch import Watch
from ..program.items import Call, Outside, Value
from ..program.reads import bounds, generators_of, states_of

Array = np.ndarray[Any, np.dtype[Any]]


class FullRecorder(Recorder):
    """A recorder that keeps copies: what it was told can be compared with what a program computes."""

    def __init__(self, state: State, watch: Watch, function: Any, made: Made) -> None:
        super().__init__(state, watch, function, made)
        arrays = [tensor._array for tensor, _ in state.tensors.values()]
        if any(type(each) is not np.ndarray for each in arrays):
            self.refuse("what is on another device than the CPU is not compared")
        self.arrays_before = copies([each for each in arrays if type(each) is np.ndarray])
        """The arrays that were there when the call began, by the identity of the arrays that they are copies of."""
        self._arrays = arrays  # held: an array that the call makes must not have the identity of one that it let go
        self.given: dict[int, dict[int, Array]] = {}
        """What each call was given, by the identity of the call and the numbers of values."""
        self.outcome: dict[int, dict[int, Array]] = {}
        """What each call made, and what it changed."""
        self.after_outside: dict[int, dict[int, Array]] = {}
        """The arrays that Python outside has changed, by the identity of its item and by their own."""

        self.drawn: dict[int, dict[Generator, Any]] = {}
        """The states of the generators that calls draw from, before they do."""

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        states = _states_of(args) if op.draws else {}
        given = [_copied(each) for each in args]
        results = super().run(op, args)
        last = self.program.items[-1] if self.program.items else None
        if isinstance(last, Call) and last.op is op and id(last) not in self.given:
            changed = [args[position] for position in op.writes]
            self.given[id(last)] = dict(numbered(last.args, given))
            self.drawn[id(last)] = states
            self.outcome[id(last)] = (
                {} if _is_unwritten(op, args) else dict(numbered(outcome_of(last), _copied([results, changed])))
            )
        return results

    def run_outside(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = self._versions()
        result = super().run_outside(function, args, kwargs)
        item = next(each for each in reversed(self.program.items) if isinstance(each, Outside))
        now = self._versions()
        self.after_outside[id(item)] = {
            key: tensor._array.copy() for key, (tensor, _) in self._state.tensors.items() if now[key] != before[key]
        }
        return result


def _is_unwritten(op: Op, args: Sequence[Any]) -> bool:
    """Whether an op makes memory in which anything may stand."""
    return isinstance(op, Factory) and "value" in op.parameters and args[op.parameters.index("value")] is None


def _states_of(args: Sequence[Any]) -> dict[Generator, Any]:
    return dict(states_of(*generators_of(args)))


@contextmanager
def drawing_again(states: Iterable[dict[Generator, Any]]) -> Iterator[None]:
    """Let generators begin where they were first; afterwards they are where they are now."""
    first: dict[Generator, Any] = {}
    for each in states:
        for generator, state in each.items():
            first.setdefault(generator, state)
    now = {each: each.state_bytes() for each in first}
    try:
        for generator, state in first.items():
            generator.set_state_bytes(state)
        yield
    finally:
        for generator, state in now.items():
            generator.set_state_bytes(state)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array.copy(order="K")
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    return type(value)([_copied(each) for each in value]) if type(value) in (list, tuple) else value


def copies(arrays: Iterable[Array]) -> dict[int, Array]:
    """A copy of each array, by its identity: windows on common memory are windows on common memory again."""
    ranges: list[tuple[int, int]] = []
    for low, high in sorted([bounds(each) for each in arrays if each.size]):
        if ranges and low < ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(high, ranges[-1][1])
        else:
            ranges.append((low, high))
    memories = [(low, high, np.array(np.frombuffer(_memory(low, high), np.uint8))) for low, high in ranges]
    found: dict[int, Array] = {}
    for each in arrays:
        if not each.size:
            found[id(each)] = each.copy()
            continue
        start = bounds(each)[0]
        low, _, memory = next(of for of in memories if of[0] <= start < of[1])
        first: int = each.__array_interface__["data"][0]
        found[id(each)] = np.ndarray(each.shape, each.dtype, memory, first - low, each.strides)
    return found


def _memory(low: int, high: int) -> Any:
    return (ctypes.c_uint8 * (high - low)).from_address(low)


def outcome_of(call: Call) -> list[Any]:
    """The values that a call makes, and those that it changes."""
    return [call.results, [call.args[position] for position in call.op.writes]]


def numbered(values: Any, arrays: Any) -> list[tuple[int, Array]]:
    """The arrays of values, by their numbers."""
    if type(values) is Value:
        return [(values.number, arrays)] if isinstance(arrays, np.ndarray) else []
    if type(values) in (list, tuple) and type(arrays) in (list, tuple):
        return [pair for value, array in zip(values, arrays, strict=True) for pair in numbered(value, array)]
    return []
