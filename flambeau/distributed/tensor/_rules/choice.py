"""The choice among the ways in which an op can run on distributed tensors.

A rule lists `Case`s, each for one dimension of the mesh: what the operands would have to be, and what the results are
then. The one for which least has to be moved is taken, along each dimension of the mesh by itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...._core.arrays.abstract import empty_meta
from ...._core.device import device as Device
from ...._core.kind import kind_of
from ...._core.modes import recording
from ...._core.tensor import Tensor
from ...._dispatch.elementwise import Elementwise
from ...._dispatch.op import Op
from .._dtensor import DTensor
from .._layout import Layout
from ..placement_types import Partial, Placement, Replicate, Shard, _StridedShard

Form = tuple[tuple[int, ...], tuple[int, ...] | None]
"""The shape and the strides of a result; None: it is contiguous."""

REPLICATE = Replicate()
SUM = Partial()


@dataclass(frozen=True)
class Case:
    """One way to run an op along one dimension of the mesh; one output stands for all that there are."""

    inputs: tuple[Placement, ...]
    output: Placement


@dataclass
class Plan:
    """The way to run an op: the placements of its operands and of its results, for all dimensions of the mesh."""

    inputs: list[tuple[Placement, ...]]
    outputs: list[tuple[Placement, ...]]
    run: Callable[[list[Tensor], list[Layout]], Any] | None = None
    """What this process does with its parts, where it is not the op itself."""


class Call:
    """An op with arguments, among which are distributed tensors: the `operands`."""

    def __init__(self, op: Op, args: list[Any], operands: list[DTensor]) -> None:
        self.op = op
        self.args = args
        self.operands = operands
        self._forms: list[Form] | None = None

    def argument(self, name: str) -> Any:
        """The argument of that name."""
        return self.args[self.op.parameters.index(name)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operands."""
        return [each._layout.shape for each in self.operands]

    def args_with(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arguments with others in place of the tensors."""
        return _replaced(self.args, iter(tensors))

    def forms(self) -> list[Form]:
        """The shapes and strides of the results: those of a call without data."""
        if self._forms is None:
            if self.op.writes:
                return []
            if isinstance(self.op, Elementwise):
                self._forms = [(np.broadcast_shapes(*self.shapes), None)]
                return self._forms
            with recording(False):
                results = self.op(*self.args_with([_without_data(each) for each in self.operands]))
            tensors = [results] if isinstance(results, Tensor) else list(results)
            self._forms = [((), ()) if each is None else (tuple(each.shape), tuple(each.stride())) for each in tensors]
        return self._forms


def _replaced(values: Any, tensors: Iterator[Tensor]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if isinstance(each, Tensor):
            found.append(next(tensors))
        elif type(each) in (list, tuple):
            found.append(type(each)(_replaced(each, tensors)))
        else:
            found.append(each)
    return found


def _without_data(tensor: Tensor) -> Tensor:
    array = tensor._array
    kind = kind_of(tensor._kind.dtype, Device("meta"))
    return Tensor._from_parts((empty_meta(tuple(array.shape), array.dtype, array.strides), kind, [0, None]))


Cases = Callable[[Call, int], list[Case]]
"""The ways to run an op along one dimension of the mesh, beside the one in which all have everything."""
Special = Callable[[Call], "Plan | Callable[..., Any]"]
"""A plan made by other means, or what to run instead on distributed tensors."""

CASES: dict[str, Cases] = {}
SPECIAL: dict[str, Special] = {}
RUNS: dict[str, Callable[[Call], Callable[[list[Tensor], list[Layout]], Any]]] = {}
"""What a process does with its parts, where arguments of the op are about the whole: sizes above all."""

Rule = TypeVar("Rule", bound=Callable[..., Any])


def cases(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function list the cases of the ops `names`, of which a text may have several."""
    return _entering(CASES, names)


def special(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function plan the ops `names`."""
    return _entering(SPECIAL, names)


def runs(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function say what a process does with its parts."""
    return _entering(RUNS, names)


def _entering(table: dict[str, Any], names: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in " ".join(names).split():
            assert name not in table, name
            table[name] = function
        return function

    return enter


def plan_by(call: Call, listed: Cases) -> Plan:
    """The cheapest of the listed cases, along each dimension of the mesh."""
    mesh = call.operands[0].device_mesh
    chosen = [_cheapest(call, number, listed) for number in range(mesh.ndim)]
    inputs = [tuple([case.inputs[position] for case in chosen]) for position in range(len(call.operands))]
    outputs = [tuple([case.output for case in chosen])] * len(call.forms())
    run = RUNS[call.op.name](call) if call.op.name in RUNS else None
    return Plan(inputs, outputs, run)


def _cheapest(call: Call, number: int, listed: Cases) -> Case:
    now = [each.placements[number] for each in call.operands]
    everything = Case(tuple([REPLICATE] * len(now)), REPLICATE)
    if all(isinstance(each, Replicate) for each in now):
        return everything
    best, least = everything, _cost(call, number, now, everything)
    for case in map(functools.partial(_strided, now), listed(call, number)):
        if all(isinstance(after, Replicate) or before != after for before, after in zip(now, case.inputs, strict=True)):
            continue  # nobody asked for parts of this kind: the result is whole rather than cut anew
        cost = _cost(call, number, now, case)
        if cost < least:
            best, least = case, cost
    return best


def _strided(now: list[Placement], case: Case) -> Case:
    """A case whose parts stride where those of the operands do: its op does not mind which part a process has."""
    strides = {each.split_factor for each in now if isinstance(each, _StridedShard)}
    if len(strides) != 1:
        return case
    (factor,) = strides

    def as_there_are(placement: Placement) -> Placement:
        return _StridedShard(placement.dim, split_factor=factor) if isinstance(placement, Shard) else placement

    return Case(tuple([as_there_are(each) for each in case.inputs]), as_there_are(case.output))


def _cost(call: Call, number: int, now: list[Placement], case: Case) -> float:
    """How many bytes a process would have to send."""
    count = call.operands[0].device_mesh.size(number)
    total = 0.0
    for operand, before, after in zip(call.operands, now, case.inputs, strict=True):
        if before == after or (isinstance(before, Replicate) and isinstance(after, Shard)):
            continue
        if isinstance(after, Partial):
            return math.inf
        size = max(operand.numel(), 1) * operand.element_size()
        if isinstance(before, Partial):
            total += size if isinstance(after, Shard) else 2 * size
        else:
            total += size / count if isinstance(after, Shard) else size
    return total
