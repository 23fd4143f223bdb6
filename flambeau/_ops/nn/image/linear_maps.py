"""Linear maps along one dimension: each output is a sum of a few inputs, and so is each gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._backends import arrays
from ...._core.arrays.quick import dim_moved
from ...._core.backend import beside
from ...._core.geometry.moving_windows import channel_last


class Taps(NamedTuple):
    """Which inputs each output takes, tap by tap."""

    indices: Any
    """(taps, outputs): where the input stands."""
    weights: Any = None
    """(taps, outputs): what it is multiplied with; None for 1."""
    counts: Any = None
    """(outputs,): how many of the taps an output has; None for all."""


def _shaped(vector: Any, axis: int) -> Any:
    """`vector` along the dimension `axis`, which is counted from the end."""
    return vector.reshape(-1, *[1] * (-1 - axis))


def apply_taps(array: Any, axis: int, taps: Taps) -> Any:
    """Sums of inputs along `axis` (counted from the end)."""
    done = arrays.taps_summed(array, array.ndim + axis, *taps)
    if done is not None:
        return done
    total: Any = None
    for tap, places in enumerate(taps.indices):
        part = np.take(array, beside(places, array), axis)
        if taps.weights is not None:
            part *= beside(_shaped(taps.weights[tap], axis), array)
        if taps.counts is not None and not (present := taps.counts > tap).all():
            part = np.where(beside(_shaped(present, axis), array), part, part.dtype.type(0))
        total = part if total is None else np.add(total, part, total)
    return total


def transposed(taps: Taps, size: int) -> Taps:
    """The outputs that took each of the `size` inputs, listed as its taps: what an input gets back."""
    count = taps.indices.shape[1]
    used = (
        np.ones(taps.indices.shape, bool)
        if taps.counts is None
        else np.arange(len(taps.indices))[:, None] < taps.counts
    )
    places, takers = taps.indices[used], np.broadcast_to(np.arange(count), used.shape)[used]
    order = np.argsort(places, kind="stable")
    places, takers = places[order], takers[order]
    counts = np.bincount(places, minlength=size)
    number = np.arange(len(places)) - np.repeat(
        np.cumsum(counts) - counts, counts
    )  # the how manieth taker of its input
    indices = np.zeros((max(counts.max(initial=0), 1), size), np.int64)
    indices[number, places] = takers
    weights = None
    if taps.weights is not None:
        weights = np.zeros(indices.shape, taps.weights.dtype)
        weights[number, places] = taps.weights[used][order]
    return Taps(indices, weights, counts)


def combined_places(places: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Where the elements at `places` of each of several dimensions stand when these are one."""
    flat = places[0]
    for further, size in zip(places[1:], sizes[1:], strict=True):
        flat = np.add.outer(flat * size, further).reshape(-1)
    return flat


def take_combined(array: Any, flat: Any, counts: tuple[int, ...]) -> Any:
    """The elements at combined places of the last dimensions, `counts` along each, in a new row-major array."""
    taken = arrays.selected_places(array, flat, counts)
    if taken is not None:
        return taken
    lead = array.shape[: -len(counts)]
    lines = array.reshape(math.prod(lead), math.prod(array.shape[-len(counts) :]))
    return lines.take(beside(flat, array), -1).reshape(*lead, *counts)


def channels_to_end(array: Any, rank: int) -> tuple[Any, bool]:
    """`array` with its dimensions as they lie in memory if the channel is innermost, and whether it is."""
    last = channel_last(array, rank)
    return (dim_moved(array, 1, -1) if last else array), last
