"""Recording a function at several sizes of its inputs, so that its graph computes with sizes in place of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._core.tensor import Tensor
from ...compiler.capture.trace import Trace
from ...onnx._sampling import Place
from ...utils._pytree import TreeSpec, tree_flatten
from .._lowering import SizeDependent

Axes = Mapping[str, Sequence[Place]]
"""The dimensions that an axis gives its size to, by its name."""


class Recorded(NamedTuple):
    """One run: its trace, the numbers of the inputs in it, and what was returned."""

    trace: Trace
    numbers: list[int | None]
    results: list[Any]
    structure: TreeSpec

    @classmethod
    def of(cls, trace: Trace, numbers: list[int | None], result: Any) -> Recorded:
        """A run that returned `result`."""
        return cls(trace, numbers, *tree_flatten(result))

    def is_like(self, other: Recorded) -> bool:
        """Whether both ran the same ops and returned the same nest."""
        ops = [[call.op for call in each.trace.calls] for each in (self, other)]
        return ops[0] == ops[1] and self.structure == other.structure


class Samples(NamedTuple):
    """The runs, the first of them with the inputs as they are, and what each axis was in them."""

    runs: list[Recorded]
    axes: dict[str, tuple[int, ...]]


def shared_sizes(leaves: Sequence[Any]) -> dict[str, list[Place]]:
    """Each size of the inputs above 1 as an axis: dimensions that are equal are taken to stay equal."""
    found: dict[str, list[Place]] = {}
    for leaf, each in enumerate(leaves):
        if isinstance(each, Tensor):
            for dim, size in enumerate(each.shape):
                if size > 1:  # a size of 1 is broadcast, and one of 0 leaves out what others do
                    found.setdefault(f"s{size}", []).append(Place(leaf, dim))
    return found


def sample(record: Callable[[Sequence[Any]], Recorded], leaves: Sequence[Any], axes: Axes, must: bool) -> Samples:
    """Record the function as it is given, with each axis twice as large, and with all of them larger.

    An axis with which the function fails or runs other ops stays what it is, and has no part in the samples; if all
    axes `must` vary, that is an error.
    """
    first = record(leaves)
    base = {name: _size(leaves, places[0]) for name, places in axes.items()}
    runs, seen = [first], [base]

    def add(sizes: dict[str, int]) -> bool:
        try:
            run = record(_resized(leaves, axes, sizes))
        except Exception:  # whatever a model raises with inputs of a size that it is not made for
            return False
        if not run.is_like(first):
            return False
        runs.append(run)
        seen.append(sizes)
        return True

    kept = [name for name, size in base.items() if add(base | {name: 2 * size})]
    if must and len(kept) < len(base):
        kept = []  # those that can only change together do so
    moving = list(base) if must else kept
    together = ((2, 1), (3, 0), (2, 0)) if moving else ()
    grown = [add(base | {name: factor * base[name] + shift for name in moving}) for factor, shift in together]
    if must and base and sum(grown) < (2 if not kept else 1):
        raise SizeDependent(f"with other sizes of {', '.join(base)} the program fails or runs other operators")
    if kept and not any(grown):
        return Samples(runs[:1], {})
    return Samples(runs, {name: tuple(each[name] for each in seen) for name in moving})


def _size(leaves: Sequence[Any], place: Place) -> int:
    return (int(leaves[place.leaf].shape[place.dim]) - place.shift) // place.factor


def _resized(leaves: Sequence[Any], axes: Axes, sizes: Mapping[str, int]) -> list[Any]:
    """Inputs without data in which the axes have the wanted sizes."""
    shapes = {number: list(each.shape) for number, each in enumerate(leaves) if isinstance(each, Tensor)}
    for name, places in axes.items():
        for leaf, dim, factor, shift in places:
            shapes[leaf][dim] = factor * sizes[name] + shift
    return [
        each.new_empty(shapes[number]).requires_grad_(each.requires_grad)
        if number in shapes and shapes[number] != list(each.shape)
        else each
        for number, each in enumerate(leaves)
    ]
