"""Elementwise calls as one kernel: what lies between them stays in registers.

The bits are those of the calls one by one. What one hands to the next is rounded to its dtype, as memory would round
it, and the compiler may not join the arithmetic of one with that of another.

Calls that have nothing to do with a kernel in the making are done before it, so that the two branches of a gate, say,
meet in one kernel although a product lies between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._codegen.expr import Expr, Trace, Untraceable, computed_type
from ..._core.tensor import Tensor
from .._program import Call, Rewritten, Value, values_in
from .._pure import is_pure
from .steps import Step, step_of
from .uses import Uses

_MOST_ARRAYS = 12
"""Kernels that read and write more arrays than that have no registers left for the numbers."""
_MOST_BETWEEN = 16
"""So many other calls may lie between those of one kernel: what it reads has to stay as long."""


def fused(calls: Sequence[Call], kept: Sequence[Value], family: Any) -> list[Call]:
    """The calls, with kernels of `family`, the backend's, for elementwise ones that follow each other."""
    return _fused(calls, Uses(calls, kept), family)


def _fused(calls: Sequence[Call], uses: Uses, family: Any) -> list[Call]:
    if not calls:
        return []
    found: list[Call] = []
    group = _Group()
    between: list[Call] = []
    for call in calls:
        step = step_of(call, family)
        if step is not None and group.takes(step):
            continue
        if group.calls and len(between) < _MOST_BETWEEN and _may_come_before(call, group):
            between.append(call)
            continue
        found += [*_fused(between, uses, family), *group.closed(uses, family)]
        group, between = _Group(), []
        if step is None or not group.takes(step):
            found.append(call)
    return [*found, *_fused(between, uses, family), *group.closed(uses, family)]


def _may_come_before(call: Call, group: _Group) -> bool:
    return type(call) is Call and is_pure(call) and not group.makes(values_in(call.args))


class _Group:
    """Calls that are computed together, element by element."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._trace = Trace()
        self._shape: tuple[int, ...] = ()
        self._loaded: dict[Value, Tensor] = {}
        """What is read, each with the tensor that it was."""
        self._computed: dict[Value, tuple[Expr, Tensor]] = {}

    def makes(self, values: Iterable[Value]) -> bool:
        """Whether one of the values is computed here."""
        return any(each in self._computed for each in values)

    def takes(self, step: Step) -> bool:
        """Add a step if it has as many elements as the others."""
        shapes = {tensor._array.shape for _, tensor in step.results}
        shape = self._shape if self.calls else next(iter(shapes))
        if shapes != {shape} or not step.results[0][1]._array.size:
            return False
        if any(value in self._loaded or value in self._computed for value, _ in step.results):
            return False
        loaded = dict(self._loaded)
        try:
            operands = [self._operand(*each) for each in zip(step.operands, step.examples, strict=True)]
            made = self._trace.inlined(step.program, operands)
            computed = {
                value: (self._trace.cast(expression, computed_type(tensor._array.dtype)), tensor)
                for (value, tensor), expression in zip(step.results, made, strict=True)
            }
        except Untraceable:
            self._loaded = loaded
            return False
        if len(self._loaded) + len(self._computed) + len(computed) > _MOST_ARRAYS:
            self._loaded = loaded
            return False
        self._shape = shape
        self._computed.update(computed)
        self.calls.append(step.call)
        return True

    def _operand(self, operand: Any, example: Any) -> Any:
        """The expression of an operand, or the number that it is."""
        if type(operand) is not Value:
            return operand
        if operand in self._computed:
            return self._as_stored(*self._computed[operand])
        self._loaded.setdefault(operand, example)
        return self._trace.input(list(self._loaded).index(operand), computed_type(example._array.dtype))

    def _as_stored(self, expression: Expr, tensor: Tensor) -> Expr:
        """A result as the next call would find it in memory."""
        name = tensor._array.dtype.name
        return self._trace.apply(f"round_{name}", expression.dtype, expression) if "float" in name else expression

    def closed(self, uses: Uses, family: Any) -> list[Call]:
        """The kernel of the group, or its calls as they are."""
        inside = [each for call in self.calls for each in values_in(call.args)]
        wanted = [each for each in self._computed if uses.count(each) > inside.count(each)]
        if len(self.calls) < 2 or not wanted or not self._loaded:
            return self.calls
        program = self._trace.program([self._computed[each][0] for each in wanted])
        made = [self._computed[each][1] for each in wanted]
        given = [each._array for each in self._loaded.values()]
        kernel = family.kernel_for(program, [each.dtype for each in given], [each._array.dtype for each in made])
        if kernel is None or kernel.strides_for(given) != [each._array.strides for each in made]:
            return self.calls
        return [
            Rewritten(
                self.calls[-1].op, tuple(self._loaded), list(wanted), tuple(self._loaded.values()), made,
                self.calls[-1].place, run=kernel.many,
            )
        ]  # fmt: skip
