"""Casts of weights in few launches, on devices where a call costs more than what it computes.

A region of autocast casts the same weights in the same order in every step. What one region cast one by one, the next
ones cast in groups: with the first weight of a group, all of them. Each cast is used where it would have been made,
unless anything has changed since: the weight, the queue, or whether work is written down. What a region does not use is
dropped at its end, and its group with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._core.kind import Kind
from ..._core.tensor import Tensor
from ..._core.version import memory_version

_MOST_ELEMENTS = 1 << 25
"""Of a group: casts ahead of their use take memory that others could have."""
_MOST_WEIGHTS = 120
_MOST_GROUPS = 1 << 10


class _Cast(NamedTuple):
    """A cast that waits for its use, and what must not have changed until then."""

    array: Any
    """Of the weight."""
    version: int
    target: Kind
    place: Any
    """Where in the device's work it was made."""
    made: Any
    group: int


class CastsAhead:
    """The casts of one thread."""

    __slots__ = ("_elements", "_groups", "_learnt", "_ready")

    def __init__(self) -> None:
        self._groups: dict[int, list[weakref.ref[Tensor]]] = {}
        """By the identity of their first weight the weights of each group."""
        self._ready: dict[int, _Cast] = {}
        self._learnt: list[weakref.ref[Tensor]] = []
        """The group that is being learnt."""
        self._elements = 0

    def take(self, weight: Tensor, target: Kind) -> Any:
        """The array of the cast of a weight; None: it has to be made."""
        found = self._ready.pop(id(weight), None)
        if found is None:
            group = self._groups.get(id(weight))
            if group is None or group[0]() is not weight:
                self._learn(weight)
                return None
            self._cast_group(group, target)
            found = self._ready.pop(id(weight), None)
            if found is None:
                return None
        array, version, wanted, place, made, _ = found
        if array is not weight._array or wanted is not target:
            return None
        holds = version == memory_version(weight._counter) and place == target.backend.place_in_work()
        return made if holds else None

    def _learn(self, weight: Tensor) -> None:
        size = weight._array.size
        if self._learnt and (len(self._learnt) >= _MOST_WEIGHTS or self._elements + size > _MOST_ELEMENTS):
            self._close()
        self._learnt.append(weakref.ref(weight))
        self._elements += size

    def _close(self) -> None:
        """Let what has been learnt be a group, if it is worth it."""
        learnt = self._learnt
        first = learnt[0]() if len(learnt) > 1 else None
        if first is not None:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.clear()
            self._groups[id(first)] = learnt
        self._learnt = []
        self._elements = 0

    def _cast_group(self, group: list[weakref.ref[Tensor]], target: Kind) -> None:
        """Cast all of a group at once, if its weights are what they were."""
        self._close()
        weights: list[Any] = [each() for each in group]
        key = id(weights[0])
        versions: list[Any] = [None if each is None else memory_version(each._counter) for each in weights]
        cast = None if None in versions else _cast_together(weights, target)
        if cast is None:
            self._groups.pop(key, None)
            return
        place, ready = target.backend.place_in_work(), self._ready
        for weight, version, made in zip(weights, versions, cast, strict=True):
            ready[id(weight)] = _Cast(weight._array, version, target, place, made, key)

    def end(self) -> None:
        """A region ends: nothing of it is used later."""
        if self._learnt:
            self._close()
        if self._ready:
            for each in self._ready.values():
                self._groups.pop(each.group, None)
            self._ready.clear()


def _cast_together(weights: Sequence[Any], target: Kind) -> Any:
    """The arrays of some tensors as another kind, in one launch; None: there is no kernel for that."""
    if len({each._kind for each in weights}) > 1:
        return None
    kernels = target.backend.functions["multi"]
    together = getattr(kernels, "cast_together", None)
    return None if together is None else together([each._array for each in weights], target.dtype.numpy)
