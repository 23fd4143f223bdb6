"""Elementwise steps that follow each other become one generated kernel: what lies between stays in registers.

Only steps whose results every correct implementation agrees on, to the bit, are fused with others: what NumPy computes
by approximation (`exp`, `tanh`) stays NumPy's.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from ..._codegen.expr import Expr, Program, Trace
from ..._codegen.expr import Untraceable as NoExpression
from .schedule import Buffer, Launch, Place
from .stand_in import COPY, SELECT

_EXACT = frozenset((
    "add", "subtract", "multiply", "divide", "negative", "positive", "absolute", "fabs", "square", "sqrt",
    "reciprocal", "floor", "ceil", "trunc", "rint", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and",
    "bitwise_or", "bitwise_xor", "invert", "isnan", "isinf", "isfinite", "signbit", "copysign", "sign", COPY,
    SELECT,
))  # fmt: skip

MOST_ARRAYS = 12
"""Kernels that read and write more arrays than that have no registers left for the numbers."""


def fused(launches: Sequence[Launch], outputs: Container[Buffer], kernels: Any) -> list[Launch]:
    """The launches, with kernels of `kernels`, the backend's family, for runs of elementwise ones."""
    remaining = _later_reads(launches)
    found: list[Launch] = []
    group = _Group()
    for number, launch in enumerate(launches):
        if group.takes(launch):
            continue
        found += group.closed(remaining[number], outputs, kernels)
        group = _Group()
        if not group.takes(launch):
            found.append(launch)
    return found + group.closed(frozenset(), outputs, kernels)


def _later_reads(launches: Sequence[Launch]) -> list[frozenset[Buffer]]:
    """For each launch the buffers that it or a later one reads."""
    found: list[frozenset[Buffer]] = []
    reads: frozenset[Buffer] = frozenset()
    for launch in reversed(launches):
        reads |= {place.buffer for place in launch.reads}
        found.append(reads)
    return found[::-1]


class _Group:
    """Launches that are computed together, element by element."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.trace = Trace()
        self.loaded: list[Place] = []
        self.stored: list[tuple[Place, Expr]] = []

    def takes(self, launch: Launch) -> bool:
        """Add a launch if it is of the same shape, and nothing that it touches has moved meanwhile."""
        if not isinstance(launch.step, Program) and launch.step not in _EXACT and not _is_exact_extreme(launch):
            return False
        if len(self.loaded) + len(self.stored) >= MOST_ARRAYS:
            return False
        shape = (self.launches or [launch])[0].writes[0].header.shape
        stored = [place for place, _ in self.stored]
        new = [each for each in launch.reads if self._value(each) is None]
        for target in launch.writes:
            if not target.header.flags.c_contiguous or target.header.shape != shape:
                return False
            if _clashes(target, [*self.loaded, *stored, *new]):
                return False
        if any(_clashes(each, stored) for each in new):
            return False
        before, steps = len(self.loaded), len(self.trace.steps)
        try:
            results = _computed(launch, [self._operand(each) for each in launch.inputs], self.trace)
        except NoExpression:
            del self.loaded[before:]
            self.trace.forget(steps)
            return False
        for target, result in zip(launch.writes, results, strict=True):
            self.stored = [(place, value) for place, value in self.stored if not place.is_same_as(target)]
            self.stored.append((target, result))
        self.launches.append(launch)
        return True

    def _value(self, place: Place) -> Expr | None:
        """What the group has computed for an array."""
        return next((value for other, value in self.stored if other.is_same_as(place)), None)

    def _operand(self, operand: Any) -> Any:
        if type(operand) is not Place:
            if isinstance(operand, np.ndarray):
                if operand.ndim:
                    raise NoExpression("a table")
                return operand[()]
            return operand
        known = self._value(operand)
        if known is not None:
            return Expr(known.trace, known.number, known.dtype)
        for number, place in enumerate(self.loaded):
            if place.is_same_as(operand):
                return self.trace.input(number, place.header.dtype)
        self.loaded.append(operand)
        return self.trace.input(len(self.loaded) - 1, operand.header.dtype)

    def closed(self, read_later: Container[Buffer], outputs: Container[Buffer], kernels: Any) -> list[Launch]:
        """The kernel of the group, or its launches as they are."""
        wanted = [each for each in self.stored if each[0].buffer in read_later or each[0].buffer in outputs]
        if not wanted or not self.loaded:
            return self.launches
        program = self.trace.program([value for _, value in wanted])
        places = [place for place, _ in wanted]
        shape = places[0].header.shape
        made = kernels.kernel_of(program, [each.header for each in (*places, *self.loaded)], shape)
        if made is None:
            return self.launches
        return [Launch(((made, (*places, *self.loaded), None),), self.loaded, places)]


def _computed(launch: Launch, operands: list[Any], trace: Trace) -> list[Expr]:
    """The results of a launch as expressions."""
    if isinstance(launch.step, Program):
        return trace.inlined(launch.step, operands)
    dtype = launch.writes[0].header.dtype
    if launch.step == COPY:
        result = operands[0]
        if dtype.kind in "iu" and result.dtype.kind == "f":
            raise NoExpression("floats that become integers: what does not fit is left to NumPy")
    elif launch.step == SELECT:
        result = np.where(*operands)
    else:
        assert launch.step is not None
        result = getattr(np, launch.step)(*operands)
    return [Expr(trace, trace.cast(result, dtype).number, dtype)]


def _is_exact_extreme(launch: Launch) -> bool:
    """Whether it is the larger or the smaller of an array and a number that is not equal to one with another sign.

    Which of two zeros of different signs is the larger one depends on the processor. A zero that stands second and has
    no sign, as in `relu`, is taken by all of them.
    """
    if launch.step not in ("maximum", "minimum") or type(launch.inputs[1]) is Place:
        return False
    bound = np.asarray(launch.inputs[1])
    if bound.ndim or bound.dtype.kind not in "fi":
        return False
    return bool(bound != 0) or (launch.step == "maximum" and not np.signbit(bound))


def _clashes(place: Place, others: Iterable[Place]) -> bool:
    """Whether a place is in memory that others see in another way."""
    return any(place.buffer is other.buffer and not place.is_same_as(other) for other in others)
