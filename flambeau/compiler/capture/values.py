"""What all recorders of ops share: numbers for the tensors of a run, noted in their place."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.interpreter import Interpreter
from ..program.items import Value


class ValueRecorder(Interpreter):
    """Notes a `Value` for each tensor that ops take and make.

    A tensor is known by its array: what autograd saves and unpacks is another object over the same one.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}
        """A tensor for each value."""
        self._values: dict[int, Value] = {}

    def value_of(self, tensor: Tensor) -> Value | None:
        """The value of a tensor, if it has one."""
        return self._values.get(id(tensor._array))

    def new_value(self, tensor: Tensor) -> Value:
        """Give a tensor the next number."""
        value = self._values[id(tensor._array)] = Value(len(self.tensors))
        self.tensors[value.number] = self._held(tensor)
        return value

    def _held(self, tensor: Tensor) -> Tensor:
        """What is kept of a tensor, so that no other array gets the address of its own: here nothing of its graph."""
        return tensor._kind.tensor_from_parts(tensor._parts())

    def _noted(self, op: Any, value: Any) -> Any:
        """An argument of an op with values in the place of tensors."""
        if isinstance(value, Tensor):
            return self._values.get(id(value._array)) or self._given(op, value)
        if type(value) in (list, tuple):
            return type(value)([self._noted(op, each) for each in value])
        return value

    def _given(self, op: Any, tensor: Tensor) -> Value:
        """The value of a tensor that no op has made."""
        return self.new_value(tensor)

    def _made(self, results: Any) -> Any:
        """Results of an op with values in the place of tensors."""
        if isinstance(results, Tensor):
            return self._values.get(id(results._array)) or self.new_value(results)
        if isinstance(results, (list, tuple)):  # named ones too
            return [self._made(each) for each in results]
        return results
