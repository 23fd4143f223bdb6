"""Large arrays that are joined, and then copied in another order of dimensions: each is copied to its place at once.

So does the gradient of a layer that gives queries, keys and values together. What fits on a schedule stays there.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..capture.abstract_arrays import is_on_host
from ..program.items import Call, Item, Rewritten, Value, uses
from ..program.lower import MOST_BYTES


def with_joins_in_order(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items, with one for each `stack`, `permute` and copy that follow each other."""
    readers = Counter([value.number for item in items for value in uses(item)])
    readers.update([each.number for each in wanted])
    found: list[Item] = []
    at = 0
    while at < len(items):
        joined = _joined(items[at : at + 3], readers)
        found.append(items[at] if joined is None else joined)
        at += 1 if joined is None else 3
    return found


def _joined(items: Sequence[Item], readers: Counter[int]) -> Rewritten | None:
    """What does the same as three items, if nobody looks at what is between them."""
    calls = [each for each in items if isinstance(each, Call)]
    if [each.op.name for each in calls] != ["stack", "permute", "contiguous_clone"]:
        return None
    stack, turn, copy = calls
    made = copy.made._array
    if not is_on_host(made) or made.nbytes <= MOST_BYTES or not made.flags.c_contiguous:
        return None
    if any(each._array.dtype != made.dtype for each in stack.examples[0]):
        return None
    if turn.args[0] != stack.results or copy.args[0] != turn.results:
        return None
    if readers[stack.results.number] > 1 or readers[turn.results.number] > 1:
        return None
    order = [dim % made.ndim for dim in turn.args[1]]
    run = functools.partial(_copied, stack.args[1] % made.ndim, tuple(map(int, np.argsort(order))), made.shape)
    return Rewritten(
        copy.op, stack.args[:1], copy.results, stack.examples[:1], copy.made, copy.place, copy.position, run=run
    )


def _copied(dim: int, back: tuple[int, ...], shape: tuple[int, ...], pieces: Sequence[Any]) -> Any:
    """The pieces, stacked along a dimension, with the dimensions in an order from which `back` leads back."""
    made = np.empty(shape, pieces[0].dtype)
    places = np.moveaxis(made.transpose(back), dim, 0)
    for place, piece in zip(places, pieces, strict=True):
        np.copyto(place, piece)
    return made
