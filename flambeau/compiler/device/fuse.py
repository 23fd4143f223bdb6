"""Elementwise calls that follow each other as one kernel: what lies between them stays in registers.

16-bit floats are left alone: stored between the calls they are rounded each time, in registers they would not be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..._codegen.expr import Expr, Program, Trace, Untraceable
from ..._core.tensor import Tensor
from ..._dispatch.elementwise import Elementwise
from ..._dispatch.gradients.fused_derivatives import Derivative, is_operand
from .._program import Call, Rewritten, Value, values_in
from .uses import Uses

_MOST_ARRAYS = 12
"""Kernels that read and write more arrays than that have no registers left for the numbers."""
_FLOATS = frozenset(("float32", "float64"))


def fused(calls: Sequence[Call], kept: Sequence[Value], family: Any) -> list[Call]:
    """The calls, with kernels of `family`, the backend's, for runs of elementwise ones."""
    uses = Uses(calls, kept)
    found: list[Call] = []
    group = _Group()
    between: list[Call] = []
    for call in calls:
        step = _step(call, family)
        if step is not None and group.takes(step):
            continue
        if group.calls and call.op.makes_windows and not group.makes(values_in(call.args)):
            between.append(call)  # a window on something else may as well be made before
            continue
        found += [*between, *group.closed(uses, family)]
        group, between = _Group(), []
        if step is None or not group.takes(step):
            found.append(call)
    return [*found, *between, *group.closed(uses, family)]


class _Step(NamedTuple):
    """An elementwise call: what it computes of which operands, values or numbers, and for which results."""

    call: Call
    program: Program
    operands: list[Any]
    tensors: list[Any]
    """The operands as they were."""
    results: list[tuple[Value, Tensor]]


def _step(call: Call, family: Any) -> _Step | None:
    """A call as a step; None: it is none."""
    if type(call) is not Call or any(type(each) is list for each in call.args):
        return None
    if isinstance(call.op, Elementwise):
        return _elementwise(call.op, call)
    return _derivative(call.op, call, family) if isinstance(call.op, Derivative) else None


def _elementwise(op: Elementwise, call: Call) -> _Step | None:
    first = call.examples[0]
    entry = op.table.get(first._kind) if isinstance(first, Tensor) else None
    if entry is None or first._array.dtype.name not in _FLOATS:
        return None
    large, operands = entry[2], list(call.args)
    compiled = large.compiled_for(len(operands))
    for position, each in enumerate(call.examples[1:], 1):
        if isinstance(each, Tensor):
            if each._kind is not first._kind:
                return None
        elif type(each) not in (int, float) or op.tensors_only:
            return None
        else:
            operands[position] = large.as_taken(each)
    if compiled is None:
        return None
    return _Step(call, compiled.program, operands, list(call.examples), [(call.results, call.made)])


def _derivative(op: Derivative, call: Call, family: Any) -> _Step | None:
    grad, needed, *saved = call.examples
    fusion = op.fusion(family, grad, needed, tuple(saved)) if grad._array.dtype.name in _FLOATS else None
    if fusion is None or fusion.compiled is None or type(call.results) is not list:
        return None
    chosen = [0, *[position for position, each in enumerate(saved, 2) if is_operand(each)]]
    operands = [call.args[position] for position in chosen]
    wanted = [pair for pair in zip(call.results, call.made, strict=True) if type(pair[0]) is Value]
    if len(wanted) != len(fusion.passed_on):
        return None
    results = []
    for pair, position in zip(wanted, fusion.passed_on, strict=True):
        if position is None:
            results.append(pair)
        elif operands[position] != pair[0]:
            return None
    return _Step(call, fusion.compiled.program, operands, [call.examples[position] for position in chosen], results)


class _Group:
    """Calls that are computed together, element by element."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._trace = Trace()
        self._loaded: dict[Value, Any] = {}
        """What is read, each with the tensor that it was."""
        self._computed: dict[Value, tuple[Expr, Any]] = {}

    def makes(self, values: Iterable[Value]) -> bool:
        """Whether one of the values is computed here."""
        return any(each in self._computed for each in values)

    def takes(self, step: _Step) -> bool:
        """Add a step if its arrays lie as those of the others."""
        if len(self._loaded) + len(self._computed) >= _MOST_ARRAYS:
            return False
        arrays = [each._array for each in step.tensors if isinstance(each, Tensor)]
        like = next(iter(self._loaded.values()))._array if self._loaded else arrays[0]
        if not all(_lies_as(like, each) for each in (*arrays, *[tensor._array for _, tensor in step.results])):
            return False
        if any(value in self._loaded or value in self._computed for value, _ in step.results):
            return False
        loaded = dict(self._loaded)
        try:
            operands = [self._operand(*each) for each in zip(step.operands, step.tensors, strict=True)]
            made = self._trace.inlined(step.program, operands)
        except Untraceable:
            self._loaded = loaded
            return False
        for (value, tensor), expression in zip(step.results, made, strict=True):
            self._computed[value] = self._trace.cast(expression, tensor._array.dtype), tensor
        self.calls.append(step.call)
        return True

    def _operand(self, operand: Any, tensor: Any) -> Any:
        if type(operand) is not Value:
            return operand
        if operand in self._computed:
            return self._computed[operand][0]
        self._loaded.setdefault(operand, tensor)
        return self._trace.input(list(self._loaded).index(operand), tensor._array.dtype)

    def closed(self, uses: Uses, family: Any) -> list[Call]:
        """The kernel of the group, or its calls as they are."""
        inside = [each for call in self.calls for each in values_in(call.args)]
        wanted = [each for each in self._computed if uses.count(each) > inside.count(each)]
        if len(self.calls) < 2 or not wanted:
            return self.calls
        program = self._trace.program([self._computed[each][0] for each in wanted])
        made = [self._computed[each][1] for each in wanted]
        kernel = family.kernel_for(
            program, [each._array.dtype for each in self._loaded.values()], [each._array.dtype for each in made]
        )
        if kernel is None:
            return self.calls
        return [
            Rewritten(
                self.calls[-1].op, tuple(self._loaded), list(wanted), tuple(self._loaded.values()), made,
                self.calls[-1].place, run=kernel.many,
            )
        ]  # fmt: skip


def _lies_as(like: Any, array: Any) -> bool:
    """Whether the elements of two arrays are in the same places."""
    if like.shape != array.shape or not like.size:
        return False
    if like.flags.c_contiguous:
        return bool(array.flags.c_contiguous)
    dense = array.nbytes == _extent(array)
    return bool(dense and like.strides == array.strides and like.dtype == array.dtype)


def _extent(array: Any) -> int:
    """How many bytes there are from the first element to the last."""
    steps = zip(array.shape, array.strides, strict=True)
    return int(sum([(size - 1) * abs(step) for size, step in steps]) + array.itemsize)
