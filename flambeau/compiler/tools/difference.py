"""Where a program and the call that it stands for part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..._core.process.caller import describe_place
from ..program.items import Call
from .full_recorder import Array


@dataclass
class Difference:
    """Where a program and the call that it stands for part."""

    calls: list[Call]
    """The fewest ops, one after the other, that show it when they are compiled together."""
    value: int
    """The number of the value that differs."""
    expected: Array
    found: Array | None
    """None: the program has nothing there."""
    given: dict[int, Array]
    """What these ops were given, by the numbers of values."""
    shown: Callable[[Sequence[Call]], Difference | None]
    """The difference that some of the ops show by themselves."""

    @property
    def call(self) -> Call:
        """The first op whose result differs."""
        return self.calls[-1]

    def __str__(self) -> str:
        names = [each.op.name for each in self.calls]
        how = "as it is run in programs" if len(names) == 1 else f"in the kernel of {' -> '.join(names)}"
        lines = [
            f"{names[-1]} gives something else {how}",
            f"  at {describe_place(self.call.place)}",
            f"  {self._amount()}",
        ]
        return "\n".join(lines)

    def _amount(self) -> str:
        expected, found = self.expected, self.found
        if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
            other = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
            return f"{expected.dtype}{list(expected.shape)} expected, {other} found"
        places = np.argwhere(bits(expected) != bits(found))
        at = tuple([int(each) for each in places[0]])
        return (
            f"{len(places)} of {expected.size} elements of {expected.dtype}{list(expected.shape)}; "
            f"the first at {at}: {expected[at]!r} expected, {found[at]!r} found"
        )


def bits(array: Array) -> Array:
    """The elements as integers, or as bytes in a further dimension."""
    whole = np.array(array, order="C")
    if array.dtype.itemsize in (1, 2, 4, 8):
        return whole.view(f"u{array.dtype.itemsize}").reshape(array.shape)
    return np.asarray(whole.view("u8").reshape(*array.shape, -1).any(-1) if whole.size else whole)


def same(one: Array, other: Array | None) -> bool:
    return (
        other is not None and one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    )
