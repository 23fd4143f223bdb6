"""Recording a function at several sizes of its inputs, so that its graph computes with sizes in place of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._core.tensor import Tensor
from ...compiler.capture.trace import Trace
from ...compiler.program.sizes import ANY, Axes, Bounds, Place, Runs, Sizes, changed_dims, size_at
from ...utils._pytree import TreeSpec
from .._lowering import SizeDependent


class Recorded(NamedTuple):
    """One run: its trace, the numbers of the inputs in it, and what was returned."""

    trace: Trace
    numbers: list[int | None]
    results: list[Any]
    structure: TreeSpec

    def is_like(self, other: Recorded) -> bool:
        """Whether both ran the same ops and returned the same nest."""
        ops = [[call.op for call in each.trace.calls] for each in (self, other)]
        return ops[0] == ops[1] and self.structure == other.structure


Samples = tuple[list[Recorded], dict[str, tuple[int, ...]]]
"""The runs, the first of them with the inputs as they are, and what each axis was in them."""


def shared_sizes(leaves: Sequence[Any]) -> dict[str, list[Place]]:
    """Each size of the inputs above 1 as an axis: dimensions that are equal are taken to stay equal."""
    found: dict[str, list[Place]] = {}
    for leaf, each in enumerate(leaves):
        if isinstance(each, Tensor):
            for dim, size in enumerate(each.shape):
                if size > 1:  # a size of 1 is broadcast, and one of 0 leaves out what others do
                    found.setdefault(f"s{size}", []).append(Place(leaf, dim))
    return found


def sample(
    record: Callable[[Sequence[Any]], Recorded], leaves: Sequence[Any], axes: Axes, bounds: Mapping[str, Bounds] | None
) -> Samples:
    """Record the function as it is given, and at other sizes of each axis and of all together; see `Runs.sample`.

    An axis with which the function fails or runs other ops stays what it is, and has no part in the samples; with
    `bounds` all axes have to vary, within them, and it is an error if one does not.
    """
    must = bounds is not None
    first = record(leaves)

    def run(sizes: Sizes) -> Recorded:
        found = first if sizes == runs.base else record(_resized(leaves, axes, sizes))
        if not found.is_like(first):
            raise SizeDependent("it runs other operators")
        return found

    runs = Runs({name: size_at(leaves, places[0]) for name, places in axes.items()}, run, Recorded.is_like)
    moving = [name for name, size in runs.base.items() if must or runs.works({name: 2 * size})]
    try:
        seen = list(runs.sample(moving, bounds or dict.fromkeys(moving, ANY), together=2, many=must))
        made = [runs.at(sizes) for sizes in seen]
    except Exception as error:
        if must:
            names = ", ".join(axes)
            raise SizeDependent(f"with other sizes of {names} the program fails or runs other operators") from error
        return [first], {}
    return made, {name: tuple(each[name] for each in seen) for name in moving}


def _resized(leaves: Sequence[Any], axes: Axes, sizes: Sizes) -> list[Any]:
    """Inputs without data in which the axes have the wanted sizes."""
    made = []
    changed = changed_dims(axes, sizes)
    for number, each in enumerate(leaves):
        if isinstance(each, Tensor):
            shape = [changed.get(number, {}).get(dim, size) for dim, size in enumerate(each.shape)]
            if shape != list(each.shape):
                each = each.new_empty(shape).requires_grad_(each.requires_grad)
        made.append(each)
    return made
