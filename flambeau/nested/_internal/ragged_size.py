"""The size of a dimension along which rows differ: a word such as `j1`, the same for tensors with the same offsets."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_numbers = itertools.count(1)
_known: dict[int, tuple[Any, RaggedSize]] = {}


class RaggedSize:
    """A size that is another in each row, or a multiple of one."""

    def __init__(self, number: int, factor: int = 1) -> None:
        self._number = number
        self._factor = factor

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedSize) and (self._number, self._factor) == (other._number, other._factor)

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __mul__(self, other: int) -> RaggedSize:
        return RaggedSize(self._number, self._factor * other)

    __rmul__ = __mul__

    def __index__(self) -> int:
        raise RuntimeError(f"{self} has no one value: it is the length of each row")


def ragged_size(offsets: Any) -> RaggedSize:
    """The word for the lengths that offsets say: one for each tensor of offsets, by its identity."""
    found = _known.get(id(offsets))
    if found is None or found[0]() is not offsets:
        found = _known[id(offsets)] = weakref.ref(offsets), RaggedSize(next(_numbers))
        weakref.finalize(offsets, _known.pop, id(offsets), None)
    return found[1]
