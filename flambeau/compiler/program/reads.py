"""Reads of elements in a program: what Python found there is a check, as any other Python state is.

A check must come before the program has done anything that a call which fails it would do again. So the ops that a read
needs are moved to the front, with the read behind them. That changes nothing if they have no effects themselves, and if
nothing that was there before had been changed when Python looked.

A read that depends on random numbers has every op in front of it that was there, in order, so that all draw the same
numbers. Where it finds something else, generators go back to where they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.backend import backend_of_array
from ..._core.generator import Generator, default_generator
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .items import Call, Item, Read, values_in


class Written:
    """The memory that the ops of a call have changed so far."""

    def __init__(self) -> None:
        self._bounds: list[tuple[int, int]] = []

    def note(self, op: Op, args: Sequence[Any]) -> None:
        """Note what a call changes."""
        for position in op.writes:
            given = args[position]
            for each in given if type(given) in (list, tuple) else (given,):
                if isinstance(each, Tensor):
                    self._bounds.append(bounds(each._array))

    def has(self, array: Any) -> bool:
        """Whether some of an array's memory may be among it."""
        if not self._bounds:
            return False
        low, high = bounds(array)
        return any(start < high and low < end for start, end in self._bounds)


def bounds(array: Any) -> tuple[int, int]:
    """The addresses between which the elements of an array are."""
    low = high = backend_of_array(array).address(array)
    if type(array) is np.ndarray and array.flags.c_contiguous:
        return (low, low + array.nbytes) if array.size else (0, 0)
    for size, step in zip(array.shape, array.strides, strict=True):
        if not size:
            return 0, 0
        low += min(0, (size - 1) * step)
        high += max(0, (size - 1) * step)
    return low, high + array.itemsize


def needed(items: Sequence[Item], read: Call) -> list[Call]:
    """The calls that a read depends on, in order."""
    wanted = {each.number for each in values_in(read.args)}
    found: list[Call] = []
    for item in reversed(items):
        if type(item) is Call and not wanted.isdisjoint([each.number for each in values_in(item.results)]):
            found.append(item)
            wanted.update([each.number for each in values_in(item.args)])
    return found[::-1]


def first(items: Sequence[Item]) -> list[Item]:
    """The items with all reads, and what these depend on, in front."""
    reads = [position for position, item in enumerate(items) if type(item) is Read and item.behind_all]
    end = reads[-1] + 1 if reads else 0
    begins = [each for each in items[:end] if isinstance(each, (Call, Read))]
    items = [*begins, *[each for each in items[:end] if not isinstance(each, (Call, Read))], *items[end:]]
    moved: dict[int, Item] = {}
    for position, item in enumerate(items):
        if type(item) is Read and not item.behind_all:
            moved.update([(id(each), each) for each in needed(items[:position], item.call)])
            moved[id(item)] = item
    return [*moved.values(), *[each for each in items if id(each) not in moved]]


def generators_before(items: Sequence[Item]) -> list[Generator]:
    """The generators from which numbers are drawn before the last of the reads."""
    reads = [position for position, item in enumerate(items) if type(item) is Read]
    drawing = [each for each in items[: reads[-1]] if isinstance(each, Call) and each.op.draws] if reads else []
    return list(dict.fromkeys([generator for each in drawing for generator in generators_of(each.examples)]))


def generators_of(args: Sequence[Any]) -> list[Generator]:
    """The generators that an op draws from which is given `args`."""
    return [each for each in args if isinstance(each, Generator)] or [default_generator]


def states_of(*generators: Generator) -> list[tuple[Generator, Any]]:
    """Where generators are."""
    return [(each, each.state_bytes()) for each in generators]


def go_back(states: Sequence[tuple[Generator, Any]]) -> None:
    """Let generators be where they were."""
    for generator, state in states:
        generator.set_state_bytes(state)


def differs(found: Any, before: Any) -> bool:
    """Whether Python finds something else than before: the bits count, and the type."""
    if type(found) is not type(before):
        return True
    if isinstance(before, np.ndarray):
        alike = found.dtype == before.dtype and found.shape == before.shape
        return not alike or bool(found.tobytes() != before.tobytes())
    if type(before) in (list, tuple):
        return len(found) != len(before) or any(map(differs, found, before))
    return repr(found) != repr(before) if isinstance(before, (float, complex)) else bool(found != before)
