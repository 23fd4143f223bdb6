"""Ops that write into a copy of what was there before, which is then copied back: they write into the array itself.

`keys.index_copy_(2, position, new)` is recorded as `index_copy`, which makes a new array, and a copy into the old one.
For a cache of which one row changes, both copy all the others.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..capture.abstract_arrays import is_on_host
from ..program.items import Call, Item, Rewritten, Value, uses


def with_slices_in_place(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items, with one for each such op and the copy behind it."""
    readers = Counter([value.number for item in items for value in uses(item)])
    readers.update([each.number for each in wanted])
    found: list[Item] = []
    for item in items:
        joined = _joined(found[-1], item, readers) if found else None
        if joined is not None:
            found.pop()
        found.append(item if joined is None else joined)
    return found


def _joined(first: Item, second: Item, readers: Counter[int]) -> Rewritten | None:
    """What does the same as two items, if nobody looks at what is between them."""
    if type(first) is not Call or type(second) is not Call or second.op.name != "copy_":
        return None
    write = getattr(first.op, "write", None)
    if write is None or type(first.results) is not Value or type(first.args[0]) is not Value:
        return None
    if second.args[:2] != (first.args[0], first.results) or readers[first.results.number] != 1:
        return None
    target, made = first.examples[0], first.made
    if not is_on_host(target._array) or target._kind is not made._kind or 0 in target._array.strides:
        return None
    if target._kind.indirect or target._kind.backend.lowering(first.op.name) is not None:
        return None
    run = functools.partial(_written, write)
    return Rewritten(
        second.op, first.args, second.results, first.examples, second.made, second.place, first.position, run=run,
        instead_of=[first, second],
    )  # fmt: skip


def _written(write: Callable[..., None], target: Any, *rest: Any) -> None:
    """Write into an array; what lies in its memory is copied before."""
    write(target, *[_apart_from(target, each) for each in rest])


def _apart_from(target: Any, value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)([_apart_from(target, each) for each in value])
    return value.copy() if type(value) is np.ndarray and np.may_share_memory(value, target) else value
