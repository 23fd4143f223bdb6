"""Elementwise calls that are computed together, as one program of an element.

The bits are those of the calls one by one. What one hands to the next is rounded to its dtype, as memory would round
it, and the compiler may not join the arithmetic of one with that of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...._codegen.expr import Expr, Program, Trace, Untraceable, computed_type
from ...._core.tensor import Tensor
from ...program.items import Call, Value, values_in
from ..fuse import MOST_ARRAYS
from .steps import Step
from .uses import Uses


class Group:
    """Calls that are computed together; `given` is read before anything else."""

    def __init__(self, given: dict[Value, Tensor] | None = None) -> None:
        self.calls: list[Call] = []
        self.loaded: dict[Value, Tensor] = dict(given or {})
        """What is read, each with the tensor that it was."""
        self.computed: dict[Value, tuple[Expr, Tensor]] = {}
        self._trace = Trace()
        self._shape = next((each._array.shape for each in self.loaded.values()), None)

    def takes(self, step: Step) -> bool:
        """Add a step if it has as many elements as the others."""
        shapes = {tensor._array.shape for _, tensor in step.results}
        shape = next(iter(shapes)) if self._shape is None else self._shape
        if shapes != {shape} or not step.results[0][1]._array.size:
            return False
        if any(value in self.loaded or value in self.computed for value, _ in step.results):
            return False
        before, steps = dict(self.loaded), len(self._trace.steps)
        computed = self._results(step)
        if computed is None or len(self.loaded) + len(self.computed) + len(computed) > MOST_ARRAYS:
            self.loaded = before
            self._trace.forget(steps)
            return False
        self._shape = shape
        self.computed.update(computed)
        self.calls.append(step.call)
        return True

    def _results(self, step: Step) -> dict[Value, tuple[Expr, Tensor]] | None:
        """The expressions of the results of a step; None: there are none."""
        try:
            operands = [self._operand(*each) for each in zip(step.operands, step.examples, strict=True)]
            made = self._trace.inlined(step.program, operands)
            return {
                value: (self._trace.cast(expression, computed_type(tensor._array.dtype)), tensor)
                for (value, tensor), expression in zip(step.results, made, strict=True)
            }
        except Untraceable:
            return None

    def _operand(self, operand: Any, example: Any) -> Any:
        """The expression of an operand, or the number that it is."""
        if type(operand) is not Value:
            return operand
        if operand in self.computed:
            return self._as_stored(*self.computed[operand])
        self.loaded.setdefault(operand, example)
        return self._read(operand)

    def _read(self, value: Value) -> Expr:
        dtype = computed_type(self.loaded[value]._array.dtype)
        return self._trace.input(list(self.loaded).index(value), dtype)

    def _as_stored(self, expression: Expr, tensor: Tensor) -> Expr:
        """A result as the next call would find it in memory."""
        name = tensor._array.dtype.name
        return self._trace.apply(f"round_{name}", expression.dtype, expression) if "float" in name else expression

    def makes(self, values: Iterable[Value]) -> bool:
        """Whether one of the values is computed here."""
        return any(each in self.computed for each in values)

    def used_outside(self, uses: Uses, values: Iterable[Value]) -> list[Value]:
        """The values, of the given ones, that calls outside of the group need."""
        inside = [each for call in self.calls for each in values_in(call.args)]
        return [each for each in values if uses.count(each) > inside.count(each)]

    def program(self, values: Sequence[Value]) -> Program:
        """What computes values, or hands on what was read."""
        return self._trace.program(
            [self.computed[each][0] if each in self.computed else self._read(each) for each in values]
        )

    def example(self, value: Value) -> Tensor:
        """What a value was."""
        return self.computed[value][1] if value in self.computed else self.loaded[value]
