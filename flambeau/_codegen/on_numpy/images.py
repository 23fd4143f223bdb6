"""Copies of images for convolutions, made by NumPy: see `images/conv.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..images.conv import Layout

Array = Any


def _padded(source: Array, layout: Layout, width: int) -> Array:
    """Images (batch, channels, depth, height, width) with zeros around them, cut to the new sizes."""
    item = source.itemsize
    given: Array = as_strided(source, layout[:5], tuple(step * item for step in layout[5:10]))
    sizes = layout.new_depth, layout.new_height, width
    result: Array = np.zeros((layout.batch, layout.channels, *sizes), source.dtype)
    into, taken = [], []
    for size, pad, new in zip(layout[2:5], layout[10:13], sizes, strict=True):
        begin, end = min(pad, new), min(pad + size, new)
        into.append(slice(begin, max(begin, end)))
        taken.append(slice(max(0, begin - pad), max(0, begin - pad) + max(0, end - begin)))
    result[(..., *into)] = given[(..., *taken)]
    return result


def planar_copy(source_type: str, target_type: str) -> Callable[..., Array]:
    """(target, source, `Layout`): plane by plane, each row as the rows of its phases."""

    def run(target: Array, source: Array, table: Array) -> Array:
        layout = Layout._make(map(int, table))
        found = _padded(source, layout, layout.new_width * layout.phases)
        parts = found.reshape(*found.shape[:-1], layout.new_width, layout.phases).swapaxes(-1, -2)
        flat = np.ascontiguousarray(parts).reshape(-1)
        target[: flat.size] = flat
        return target

    return run


def channels_innermost_copy(source_type: str, target_type: str) -> Callable[..., Array]:
    """(target, source, `Layout`): with the channels innermost."""

    def run(target: Array, source: Array, table: Array) -> Array:
        layout = Layout._make(map(int, table))
        found = np.moveaxis(_padded(source, layout, layout.new_width), 1, -1)
        flat = np.ascontiguousarray(found).reshape(-1)
        target.reshape(-1)[: flat.size] = flat
        return target

    return run
