"""Writing what a call returns: containers and objects as they were, with new tensors over the values of a program."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.size import Size
from ..._core.tensor import Tensor, View
from ..capture.guards import State
from ..capture.mutations import Change
from ..capture.new_objects import (
    attributes_of,
    base_of,
    fill_attributes,
    filler,
    is_container,
    is_remade,
    parts_of,
    slots_of,
)
from ..capture.watch import Uncompilable
from ..program.items import Call, Value, values_in
from .source import Source


class Answer:
    """Writes what a call returns."""

    def __init__(self, source: Source, recording: Any, tensors: dict[int, str], wanted: list[Value]) -> None:
        self.lines: list[str] = []
        self.changes: list[str] = []
        """Lines that change what was there before; they come behind the others."""
        self._source, self._recorder, self._state = source, recording.recorder, recording.state
        self._tensors, self._wanted = tensors, wanted
        self._made: dict[int, str] = {}
        self._owners: set[int] = set()
        left = [recording.result, *[each.after for each in recording.changes]]
        self._left = _tensors_in(left, recording.recorder.made.parts)
        """The identities of the tensors that a call leaves."""
        self._objects: dict[int, str | None] = {}
        """The names of new objects and containers; None: of one that is being written."""

    def expression(self, tree: Any) -> str:
        """Source for a part of the result."""
        if isinstance(tree, Tensor):
            return self._tensors.get(id(tree)) or self._made.get(id(tree)) or self._new(tree)
        known = self._state.place_of(tree)
        if known is not None:
            found: str = known
            return found
        kind = type(tree)
        if kind in (int, float, Size):
            return self._source.number(tree)
        if self._recorder.made.is_constant(tree):
            return self._source.constant(tree)
        if kind is tuple:
            return f"({''.join([f'{self.expression(each)}, ' for each in tree])})"
        if id(tree) in self._objects:
            name = self._objects[id(tree)]
            if name is None:
                raise Uncompilable(f"it returns a {kind.__name__} that holds itself")
            return name
        if id(tree) not in self._recorder.made.parts and not isinstance(tree, tuple):
            raise Uncompilable(f"it returns a {kind.__name__} that was there before, found in a way that is not known")
        self._objects[id(tree)] = None
        name = self._object(tree) if is_remade(kind) else self._variable(self._container(tree))
        self._objects[id(tree)] = name
        return name

    def change(self, changes: Sequence[Change]) -> None:
        """Write what the call has changed in Python."""
        for each in changes:
            place = each.place
            if each.is_of_items():
                for key, value in each.after.items():
                    if key not in each.before or each.before[key] is not value:
                        self.changes.append(f"{place}[{self._key(key)}] = {self.expression(value)}")
            elif isinstance(each.after, dict):
                self.changes += [f"{place}.clear()", f"{place}.update({self._items(each.after)})"]
            else:
                items = ", ".join([self.expression(value) for value in each.after])
                put = "update" if isinstance(each.after, set) else "extend"
                self.changes += [f"{place}.clear()", f"{place}.{put}([{items}])"]

    def _key(self, key: Any) -> str:
        if not self._recorder.made.is_constant(key) and type(key) is not tuple:
            raise Uncompilable(f"a {type(key).__name__} is a key of a dictionary that it makes or changes")
        return self.expression(key)

    def _variable(self, text: str) -> str:
        name = f"o{len(self._objects)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _container(self, tree: Any) -> str:
        """Source for a container of one of Python's own classes."""
        kind = type(tree)
        if kind is dict:
            return self._items(tree)
        if kind is OrderedDict:
            return f"{self._source.constant(kind)}({self._items(tree)})"
        if kind is defaultdict:
            return f"{self._source.constant(kind)}({self.expression(tree.default_factory)}, {self._items(tree)})"
        listed = ", ".join([self.expression(each) for each in tree])
        if kind is list:
            return f"[{listed}]"
        if kind is deque:
            return f"{self._source.constant(kind)}([{listed}], {tree.maxlen})"
        if kind in (set, frozenset) and all(map(self._recorder.made.is_constant, tree)):
            return f"{self._source.constant(kind)}([{listed}])"
        if isinstance(tree, tuple) and hasattr(kind, "n_sequence_fields"):
            return f"{self._source.constant(kind)}([{listed}])"
        raise Uncompilable(f"it returns a {kind.__name__}")

    def _items(self, tree: dict[Any, Any]) -> str:
        parts = [f"{self._key(key)}: {self.expression(each)}" for key, each in dict.items(tree)]
        return f"{{{', '.join(parts)}}}"

    def _object(self, tree: Any) -> str:
        """Write a new object of a class, as it was when the call returned; what it holds may hold it."""
        kind, base = type(tree), base_of(type(tree))
        given = self._source.constant(kind)
        if base is tuple:
            given += f", ({''.join([f'{self.expression(each)}, ' for each in tuple.__iter__(tree)])})"
        name = self._objects[id(tree)] = self._variable(f"{self._source.constant(base.__new__)}({given})")
        if issubclass(base, dict) and tree:
            self.lines.append(f"{self._source.constant(filler(kind))}({name}, {self._items(tree)})")
        elif base is list and tree:
            items = ", ".join([self.expression(each) for each in list.__iter__(tree)])
            self.lines.append(f"{self._source.constant(filler(kind))}({name}, [{items}])")
        if attributes := attributes_of(tree):
            self.lines.append(f"{self._source.constant(fill_attributes)}({name}, {self._items(attributes)})")
        for slot, content in slots_of(tree):
            self.lines.append(f"{self._source.constant(slot.__set__)}({name}, {self.expression(content)})")
        return name

    def reading(self, read: Call, result: Any) -> str:
        """Source for a Python value that the last op reads."""
        self._wanted += values_in(read.args)
        run, kind = self._source.run_of(read), self._source.constant(type(result))
        return f"{kind}({run}({', '.join([self._source.expression(each) for each in read.args])}))"

    def attach(self, outputs: Sequence[Tensor]) -> None:
        """Write that the node is behind the results."""
        for number, each in enumerate(outputs):
            name = self._made[id(each)]
            self.lines.append(f"{name}._requires_grad, {name}._grad_fn, {name}._output_nr = True, node, {number}")

    def name_of(self, tensor: Tensor) -> str | None:
        """The variable that a new tensor is in."""
        return self._made.get(id(tensor))

    def _new(self, tensor: Tensor) -> str:
        value = self._recorder.value_of(tensor)
        if value is None or value.number in self._recorder.program.inputs or type(tensor) is not Tensor:
            raise Uncompilable("it returns a tensor that no op made, or another view of one that was there before")
        self._wanted.append(value)
        name = self._made[id(tensor)] = f"r{len(self._made)}"
        origin = tensor._view
        if origin is not None:
            held = self._tensors.get(id(origin.base))
            follows = not (tensor.requires_grad or origin.base.requires_grad)
            if held is not None and follows and tensor._kind.is_cpu:  # a device may read a copy of its input
                version = "0" if tensor._counter is None else f"{held}._counter[0]"
                self._as_view_of(name, tensor, origin, held, version, value)
                return name
            if id(origin.base) in self._left and origin.base.requires_grad is tensor.requires_grad:
                self._as_view_of(name, tensor, origin, self.expression(origin.base), "0", value)
                return name
        owner = id(tensor if origin is None else origin.base)
        if owner in self._owners:
            raise Uncompilable("it returns two tensors over the same memory")
        self._owners.add(owner)
        self.lines.append(f"{name} = {self._source.tensor(value, tensor._kind, tensor._counter is None)}")
        if origin is not None:
            self._as_view(name, tensor, origin)
        return name

    def _as_view_of(self, name: str, tensor: Tensor, origin: View, base: str, version: str, value: Value) -> None:
        """Write a new tensor that is a view of an argument, or of another one that the call returns, as `x.t()`."""
        self.lines += [
            f"{name} = {self._source.tensor(value, tensor._kind, tensor._counter is None)}",
            f"{name}._counter, {name}._view = {base}._counter, View({base}, {version}, {origin.creation})",
        ]

    def _as_view(self, name: str, tensor: Tensor, origin: View) -> None:
        """Write of what a new tensor is a view. One with a history is what the node behind it gives, and no view."""
        base = self._recorder.value_of(origin.base)
        if base is None or base.number in self._recorder.program.inputs:
            raise Uncompilable("it returns a view of a tensor that was there before")
        if not tensor.requires_grad:
            self._wanted.append(base)
            self.lines += [
                f"base = {self._source.tensor(base, origin.base._kind, tensor._counter is None)}",
                f"{name}._counter, {name}._view = base._counter, View(base, 0, {origin.creation})",
            ]


@dataclass
class Answered:
    """What a call returns and changes, written down."""

    answer: Answer
    text: str
    """The expression for what it returns."""
    wanted: list[Value]
    """The values that this needs."""
    lines: tuple[Any, ...]
    """All that was written: it is the same for two calls that return and change the same but for numbers."""


def answer_of(source: Source, recording: Any) -> Answered:
    """Write what a call returns and changes; `recording`: what was recorded, or followed."""
    recorder, wanted = recording.recorder, list[Value]()
    answer = Answer(source, recording, source.tensors, wanted)
    if recorder.read is None:
        text = answer.expression(recording.result)
    else:
        text = answer.reading(recorder.read, recording.result)
    answer.change(recording.changes)
    versions = counted_versions(recording.state, recorder.changes())
    lines = text, *answer.lines, *answer.changes, *versions, *[each.number for each in wanted]
    return Answered(answer, text, wanted, lines)


def counted_versions(state: State, changes: dict[int, int]) -> list[str]:
    """Lines that say how often the tensors that were there before have changed."""
    lines: list[str] = []
    done: set[int] = set()
    for key, (tensor, held) in state.tensors.items():
        if changes[key] and id(tensor._counter) not in done:
            done.add(id(tensor._counter))
            lines.append(f"{held.removesuffix('._array')}._counter[0] += {changes[key]}")
    return lines


def _tensors_in(tree: Any, objects: set[int]) -> set[int]:
    """The identities of the tensors in containers, and in those of the objects in them that are asked for."""
    found: set[int] = set()
    done: dict[int, Any] = {}
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            found.add(id(value))
        elif id(value) not in done and (is_container(value) or id(value) in objects):
            done[id(value)] = value
            waiting += parts_of(value)
    return found
