"""Writing what a call returns: containers as they were, with new tensors over the values of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor, View
from ._emit import Source
from ._kinds import is_named_tuple
from ._program import Call, Value, values_in
from ._record import Recorder
from ._watch import Uncompilable


class Answer:
    """Writes what a call returns."""

    def __init__(self, source: Source, recorder: Recorder, tensors: dict[int, str], wanted: list[Value]) -> None:
        self.lines: list[str] = []
        self._source, self._recorder, self._tensors, self._wanted = source, recorder, tensors, wanted
        self._made: dict[int, str] = {}
        self._owners: set[int] = set()

    def expression(self, tree: Any) -> str:
        """Source for a part of the result."""
        if isinstance(tree, Tensor):
            return self._tensors.get(id(tree)) or self._made.get(id(tree)) or self._new(tree)
        if type(tree) is list:
            return f"[{', '.join([self.expression(each) for each in tree])}]"
        if type(tree) is tuple:
            return f"({''.join([f'{self.expression(each)}, ' for each in tree])})"
        if isinstance(tree, tuple) and (is_named_tuple(type(tree)) or hasattr(type(tree), "n_sequence_fields")):
            make = getattr(type(tree), "_make", type(tree))
            return f"{self._source.constant(make)}(({''.join([f'{self.expression(each)}, ' for each in tree])}))"
        if type(tree) is dict:
            parts = [f"{self._source.constant(key)}: {self.expression(each)}" for key, each in tree.items()]
            return f"{{{', '.join(parts)}}}"
        if type(tree) in (int, float):
            return self._source.number(tree)
        if tree is None or type(tree) in (bool, str):
            return self._source.constant(tree)
        raise Uncompilable(f"it returns a {type(tree).__name__}")

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

    def _new(self, tensor: Tensor) -> str:
        value = self._recorder.value_of(tensor)
        if value is None or value.number in self._recorder.program.inputs or type(tensor) is not Tensor:
            raise Uncompilable("it returns a tensor that no op made, or another view of one that was there before")
        self._wanted.append(value)
        name = self._made[id(tensor)] = f"r{len(self._made)}"
        origin = tensor._view
        owner = id(tensor if origin is None else origin.base)
        if owner in self._owners:
            raise Uncompilable("it returns two tensors over the same memory")
        self._owners.add(owner)
        self.lines.append(f"{name} = {self._source.tensor(value, tensor._kind)}")
        if origin is not None:
            self._as_view(name, tensor, origin)
        return name

    def _as_view(self, name: str, tensor: Tensor, origin: View) -> None:
        """Write of what a new tensor is a view. One with a history is what the node behind it gives, and no view."""
        base = self._recorder.value_of(origin.base)
        if base is None or base.number in self._recorder.program.inputs:
            raise Uncompilable("it returns a view of a tensor that was there before")
        if not tensor.requires_grad:
            self._wanted.append(base)
            self.lines += [
                f"base = {self._source.tensor(base, origin.base._kind)}",
                f"{name}._counter, {name}._view = base._counter, View(base, 0, {origin.creation})",
            ]
