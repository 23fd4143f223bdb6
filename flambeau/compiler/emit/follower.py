"""A call that is compared with a recorded one, op by op, while it runs: what differs has to be numbers alone."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._core.backend import is_array
from ..._core.tensor import Tensor
from ..._dispatch.composite import Composite
from ..._dispatch.factory import constant
from ..._dispatch.op import Op
from ..capture.careful import Careful
from ..capture.guards import State
from ..capture.new_objects import Made
from ..capture.recorder import Recorder
from ..capture.watch import Watch
from ..passes.heads import is_repeating
from ..program.items import Call, Item, Program, Value, values_in
from .places import Place, Places, in_order
from .sizes import NUMBERS, decisive, same


@dataclass
class Step:
    """One op of a recorded call."""

    call: Call
    """Without its tensors."""
    decisive: list[Any]
    """What decided which function runs it."""
    looks: tuple[Any, ...]
    """Kinds, shapes and strides of its tensors, and the types of what else it is given."""
    numbers: list[Any]
    """The numbers among its arguments."""

    def looks_like(self, given: Sequence[Any]) -> bool:
        """Whether tensors of the same kinds, shapes and strides are among the arguments and results of another call:
        what decided which function runs it decides the same for these.
        """
        return _is_alike(self.looks, given)

    def has_other_numbers(self, numbers: list[Any]) -> bool:
        """Whether another call has other numbers among its arguments."""
        return len(numbers) != len(self.numbers) or not all(map(_is_same_number, self.numbers, numbers))


class Looks:
    """What arrays look like beside each other: which lie in the same memory, and which have the same shape."""

    def __init__(self, given: Sequence[Any]) -> None:
        self._places = Places(given)
        self._shapes: dict[Any, int] = {}
        self.shapes: list[int] = []
        """For each array the first one with its shape, strides and type, in the order in which such were met."""
        self.where: list[Place] = []
        for each in given:
            self.add(each)

    def add(self, array: Any) -> None:
        """Take note of the next array."""
        look = array.shape, array.strides, array.dtype
        self.shapes.append(self._shapes.setdefault(look, len(self._shapes)))
        self.where.append(self._places.of(array))

    def all(self) -> tuple[Any, ...]:
        """All that passes over the ops ask for."""
        return self.shapes, in_order(self.where)


class Steps:
    """The ops of a recorded call, forward and backward, as another call is compared with them."""

    def __init__(self, recorder: Recorder, places: dict[int, str], arriving: Sequence[Value], boundary: int) -> None:
        program, given = recorder.program, {each.number for each in arriving}
        self.all = [_step(each) for each in program.items if isinstance(each, Call)]
        self.inputs = {
            number: places[id(each._array)] for number, each in program.inputs.items() if number not in given
        }
        """Where the tensors are that were there before, by the numbers of their values."""
        self.arriving, self.boundary = list(arriving), boundary
        self.repeating: frozenset[int] = frozenset()
        """The ops that have to repeat heads in every call, for the program leaves them out."""
        seen = set(self.inputs)
        looks = Looks([recorder.tensors[number]._array for number in self.inputs])
        for position, step in enumerate(self.all):
            if position == boundary:
                for value in arriving:
                    seen.add(value.number)
                    looks.add(recorder.tensors[value.number]._array)
            for value in values_in(step.call.results):
                if value.number not in seen:
                    seen.add(value.number)
                    looks.add(recorder.tensors[value.number]._array)
        self.looks = looks.all()

    def moved_in(self, items: Sequence[Item]) -> set[int] | None:
        """The ops of another recorded call that were given other numbers, or other shapes; None: it has other ops."""
        calls = [each for each in items if isinstance(each, Call)]
        if len(calls) != len(items) or len(calls) != len(self.all):
            return None
        given = [((*each.examples, each.made), numbers_in(each.args)) for each in calls]
        return {
            at
            for at, (step, (tensors, numbers)) in enumerate(zip(self.all, given, strict=True))
            if not step.looks_like(tensors) or step.has_other_numbers(numbers)
        }


def _step(call: Call) -> Step:
    bare = replace(call, examples=(), made=None, place=None)
    given = (*call.examples, call.made)
    return Step(bare, [decisive(each) for each in given], tuple(map(_looks_of, given)), numbers_in(call.args))


def _looks_of(tree: Any) -> Any:
    """What is compared of a tensor, of each item of a list, or of something else."""
    if isinstance(tree, Tensor):
        return tree._kind, tree._array.shape, tree._array.strides
    return [_looks_of(each) for each in tree] if type(tree) in (list, tuple) else type(tree)


def _is_alike(known: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether tensors, and what is beside them, look as those that are known."""
    if len(known) != len(given):
        return False
    for look, each in zip(known, given, strict=True):
        kind = type(look)
        if kind is tuple:
            if not isinstance(each, Tensor):
                return False
            array = each._array
            if each._kind is not look[0] or array.shape != look[1] or array.strides != look[2]:
                return False
        elif kind is list:
            if type(each) not in (list, tuple) or not _is_alike(look, each):
                return False
        elif type(each) is not look:
            return False
    return True


def _is_same_number(one: Any, other: Any) -> bool:
    if one is other or type(one) is np.ndarray or type(one) is not type(other):
        return one is other
    return bool(one == other) if type(one) is int else repr(one) == repr(other)


def numbers_in(tree: Any) -> list[Any]:
    """The numbers among arguments, in the order in which they are written."""
    if type(tree) in (list, tuple):
        return [number for each in tree for number in numbers_in(each)]
    return [tree] if type(tree) in NUMBERS else []


class Follower(Careful):
    """Runs the ops of a call as usual, and compares them with recorded ones."""

    repeats = True
    read: Call | None = None
    """No call is followed that returns what its last op reads."""

    def __init__(self, steps: Steps, state: State, watch: Watch, made: Made) -> None:
        super().__init__()
        self._steps, self._state, self._watch = steps, state, watch
        self.made = made
        self.reason: str | None = None
        """Why the call is another one than that which was recorded."""
        self.numbers: list[list[Any]] = []
        """For each op the numbers that its arguments hold."""
        self.moved: set[int] = set()
        """The ops that are given other numbers than in the recorded call, or arrays of another shape."""
        self._values: dict[int, Value] = {}
        self._alive: dict[int, Any] = {}
        by_place = {held: tensor for tensor, held in state.tensors.values()}
        self.program = Program([], {number: by_place[held] for number, held in steps.inputs.items()})
        for number, tensor in self.program.inputs.items():
            self._values[id(tensor._array)] = Value(number)
        self._looks = Looks([each._array for each in self.program.inputs.values()])
        self._arriving = list(steps.arriving)
        self._at_first = self._versions()

    @property
    def is_refused(self) -> bool:
        return self.reason is not None or self._watch.reason is not None

    @property
    def is_whole(self) -> bool:
        """Whether every op of the recorded call has run, and arrays lie beside each other as there."""
        return len(self.numbers) == len(self._steps.all) and self._looks.all() == self._steps.looks

    def refuse(self, reason: str) -> None:
        """Note that the call is another one than that which was recorded."""
        self.reason = self.reason or reason
        self._watch.stop()

    def misses(self, what: str) -> None:
        self.refuse(what)

    def reads_offset(self, tensor: Any) -> None:
        self.refuse("it asks where a tensor begins")

    def changes(self) -> dict[int, int]:
        """How often ops have changed the tensors that were there before, by their arrays."""
        now = self._versions()
        return {key: now[key] - self._at_first[key] for key in now}

    def _versions(self) -> dict[int, int]:
        tensors = self._state.tensors.items()
        return {key: 0 if each._counter is None else each._counter[0] for key, (each, _) in tensors}

    def value_of(self, tensor: Tensor) -> Value | None:
        """The value of a tensor, if it has one."""
        return self._values.get(id(tensor._array))

    def known(self, tensor: Tensor) -> Value | None:
        """The value of a gradient."""
        return self.value_of(tensor)

    def new_input(self, tensor: Tensor) -> Value:
        """Let a gradient arrive, behind the last op of the forward part."""
        value = self._arriving.pop(0)
        if len(self.numbers) != self._steps.boundary:
            self.refuse("it runs fewer ops")
        self._give(value, tensor._array)
        self.program.inputs[value.number] = tensor
        return value

    def _run(self, op: Op, args: Sequence[Any]) -> Any:
        at = len(self.numbers)
        step = self._steps.all[at] if at < len(self._steps.all) else None
        numbers: list[Any] = []
        is_same = step is not None and op is step.call.op and self._is_same(step.call.args, tuple(args), numbers)
        if isinstance(op, Composite):
            results = self._apply(op.as_one, (args,), declines=True)
            if results is None:
                with self:
                    return self._apply(op.decomposition, args)
        else:
            results = self._apply(op, args)
        given = (*args, results)
        looks_same = step is not None and step.looks_like(given)
        if (
            step is None
            or not is_same
            or op.reads
            or getattr(op.shape, "refuses", False)
            or (at in self._steps.repeating and not is_repeating(op.name, args))
            or not (looks_same or [decisive(each) for each in given] == step.decisive)
            or not self._is_made(step.call.results, results)
        ):
            self.refuse(f"it runs {op.name}")
            return results
        if not looks_same or step.has_other_numbers(numbers):
            self.moved.add(at)
        self.numbers.append([each.copy() for each in numbers] if op is constant else numbers)
        self.program.items.append(step.call)
        return results

    def _is_same(self, known: Any, given: Any, numbers: list[Any]) -> bool:
        """Whether an argument is the recorded one but for numbers, which are noted."""
        kind = type(known)
        if kind is list or kind is tuple:
            if type(given) is not kind or len(given) != len(known):
                return False
            for one, other in zip(known, given, strict=True):
                if type(one) is int is type(other):
                    numbers.append(other)
                elif not self._is_same(one, other, numbers):
                    return False
            return True
        if kind is Value:
            found = self._values.get(id(given._array if isinstance(given, Tensor) else given))
            return found is not None and found.number == known.number
        if kind in NUMBERS:
            numbers.append(given)
            return type(given) is kind and id(given) not in self._values
        return known is given or (not isinstance(given, Tensor) and not is_array(given) and same(known, given))

    def _is_made(self, known: Any, made: Any) -> bool:
        """Whether results are those of the recorded op; they get the numbers of its values."""
        if type(known) is Value:
            if type(made) is not Tensor or type(made._array) is not np.ndarray:
                return False
            found = self._values.get(id(made._array))
            if found is None:
                self._give(known, made._array)
            return found is None or found.number == known.number
        if type(known) is list:
            if not isinstance(made, (list, tuple)) or len(made) != len(known):
                return False
            return all(self._is_made(one, other) for one, other in zip(known, made, strict=True))
        return not isinstance(made, Tensor) and same(known, made)

    def _give(self, value: Value, array: Any) -> None:
        """Let an array be a value, as long as it is there."""
        key, values, alive = id(array), self._values, self._alive
        self._looks.add(array)
        values[key] = value

        def forget(_: Any) -> None:
            del values[key], alive[key]

        alive[key] = weakref.ref(array, forget)
