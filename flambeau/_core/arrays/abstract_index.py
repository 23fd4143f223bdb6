"""What an index with arrays in it selects of an abstract array."""

from __future__ import annotations

from typing import Any

import numpy as np

from .abstract import AbstractArray, NeedsData, Steps, empty_meta, shape_of, walked
from .views import Shape, broadcast_shapes


def gathered(array: AbstractArray, index: tuple[Any, ...]) -> AbstractArray:
    """The result of an index with arrays in it: their common shape stands where they stood, if they stood together."""
    entries: list[Any] = []
    taken = 0
    for each in index:
        if isinstance(each, AbstractArray) and each.dtype == bool:
            raise NeedsData("an index by a mask: the result's shape is in the elements")
        if isinstance(each, (list, range, bool, np.bool_)):
            each = np.asarray(each)
        if isinstance(each, np.ndarray) and each.dtype == bool:
            entries += each.nonzero() if each.ndim else [np.zeros(int(each), np.intp)]
            taken += each.ndim
            if not each.ndim:
                array = array[None]
                taken += 1
        else:
            entries.append(each)
            taken += each is not None and each is not Ellipsis
    if not any(each is Ellipsis for each in entries):
        entries.append(Ellipsis)
    at = next(position for position, each in enumerate(entries) if each is Ellipsis)
    entries[at : at + 1] = [slice(None)] * (array.ndim - taken)
    if taken > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {taken} were indexed")
    fancy = [position for position, each in enumerate(entries) if each is not None and not isinstance(each, slice)]
    shapes = [shape_of(entries[position]) for position in fancy]
    try:
        common = broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    result = _picked(array, entries, fancy, common)
    together = fancy[-1] - fancy[0] + 1 == len(fancy)
    place = sum([position < fancy[0] for position in range(len(entries)) if position not in fancy]) if together else 0
    order = list(range(len(common), len(common) + place)), list(range(len(common)))
    rest = range(len(common) + place, result.ndim)
    return result.transpose([*order[0], *order[1], *rest]) if place else result


def _picked(array: AbstractArray, entries: list[Any], fancy: list[int], common: Shape) -> AbstractArray:
    """What the positions of `common` select: they come first, and what is left of each lies as it did."""
    rest = _sliced(array, entries, fancy)
    if not array.size or array.flags.c_contiguous:
        return empty_meta((*common, *rest), array.dtype)
    kept = array[tuple([0 if position in fancy else each for position, each in enumerate(entries)])]
    inner = walked(rest, array.itemsize, [Steps(rest, kept.strides)])
    outer = empty_meta(common, array.dtype).strides
    times = 1
    for size in rest:
        times *= size
    return empty_meta((*common, *rest), array.dtype, (*[step * times for step in outer], *inner))


def _sliced(array: AbstractArray, entries: list[Any], fancy: list[int]) -> Shape:
    shape, dim = [], 0
    for position, each in enumerate(entries):
        if each is None:
            shape.append(1)
            continue
        if position not in fancy:
            shape.append(len(range(*each.indices(array.shape[dim]))))
        dim += 1
    return tuple(shape)
