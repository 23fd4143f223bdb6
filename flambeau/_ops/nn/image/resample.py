"""Which inputs each output of a resampling takes along one dimension, and with which weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.backend import read
from .linear_maps import Taps

Filter = Callable[[Any], Any]


def _single(real: Any) -> Any:
    """The type to compute in: single precision where `real` is half."""
    return np.float32 if np.dtype(real).itemsize == 2 else real


def _scale(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Any:
    """How many inputs there are to an output."""
    if align_corners:
        return real((size - 1) / (count - 1)) if count > 1 else real(0)
    if factor is not None and factor > 0:
        return real(1.0 / factor)
    return real(size) / real(count)


def _centres(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Any:
    """Where the outputs lie among the inputs."""
    scale = _scale(size, count, align_corners, factor, real)
    if align_corners:
        return scale * np.arange(count, dtype=real)
    return (np.float64(scale) * (np.arange(count) + 0.5) - 0.5).astype(real)  # rounded once


def _floors(places: Any, size: int) -> Taps:
    """One input for each output; places are rounded to float32 first, as PyTorch does."""
    return Taps(np.minimum(np.floor(places.astype(np.float32)).astype(np.int64), size - 1)[np.newaxis])


def nearest(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """The input at or before each output."""
    real = _single(real)
    return _floors(np.arange(count, dtype=real) * _scale(size, count, False, factor, real), size)


def nearest_exact(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """The input whose middle is nearest to the output's."""
    real = _single(real)
    return _floors(_centres(size, count, False, factor, real) + real(0.5), size)


def nearest2d(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """`nearest` for images: always in single precision, and a factor is forgotten where it comes to 1 or 2."""
    forget = count in (size, 2 * size)
    return nearest(size, count, False, None if forget else factor, np.float32)


def nearest_exact2d(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """`nearest_exact` for images: always in single precision."""
    scale = _scale(size, count, False, factor, np.float32)
    return _floors((np.arange(count, dtype=np.float32) + np.float32(0.5)) * scale, size)


NEAREST = (nearest, nearest_exact, nearest2d, nearest_exact2d)


def linear(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """The two inputs around each output. In half precision the weights are rounded, as PyTorch's are."""
    single = _single(real)
    if size == count:
        places = np.arange(count)
        part = np.zeros(count, single)
    else:
        centres = np.maximum(_centres(size, count, align_corners, factor, single), 0)
        places = np.minimum(centres.astype(np.int64), size - 1)
        part = np.clip(centres - places, 0, 1).astype(real).astype(single)
    rest = (1 - part).astype(real).astype(single)
    return Taps(np.stack([places, np.minimum(places + 1, size - 1)]), np.stack([rest, part]))


def linear2d(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """`linear` for images: in single precision at least."""
    return linear(size, count, align_corners, factor, _single(real))


def cubic(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """The four inputs around each output, weighted by Keys' cubic with a = -0.75; the border repeats."""
    single = _single(real)
    centres = _centres(size, count, align_corners, factor, single)
    below = np.minimum(np.floor(centres).astype(np.int64), size - 1)
    part = np.clip(centres - below, 0, 1).astype(single)
    places = np.clip(below + np.arange(-1, 3).reshape(-1, 1), 0, size - 1)
    return Taps(places, np.stack(cubic_weights(part)).astype(real).astype(single))


def cubic_weights(part: Any) -> list[Any]:
    """The weights of the four inputs around a point that lies `part` of the way between the middle two."""
    a = -0.75
    rest = 1 - part

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(part + 1), near(part), near(rest), far(rest + 1)]


def _filtered(
    size: int,
    count: int,
    align_corners: bool,
    factor: float | None,
    real: Any,
    width: int,
    kernel: Callable[[Any], Any],
) -> Taps:
    """Weights from a filter that is as wide as an output where outputs are wider than inputs."""
    scale = _scale(size, count, align_corners, factor, real)
    support = real(width / 2) * scale if scale >= 1 else real(width / 2)
    narrowing = real(1) / scale if scale >= 1 else real(1)
    centres = scale * (np.arange(count, dtype=real) + real(0.5))
    first = np.maximum((centres - support + real(0.5)).astype(np.int64), 0)
    counts = np.minimum((centres + support + real(0.5)).astype(np.int64), size) - first
    limit = int(np.ceil(support)) * 2 + 1
    counts = np.clip(counts, 0, limit)
    offsets = np.arange(counts.max(initial=1)).reshape(-1, 1)
    weights = kernel((offsets + first - centres + real(0.5)) * narrowing).astype(real)
    weights = np.where(offsets < counts, weights, real(0))
    total = weights.sum(0)
    return Taps(np.minimum(first + offsets, size - 1), weights / np.where(total == 0, real(1), total), counts)


def _triangle(x: Any) -> Any:
    return np.maximum(1 - np.abs(x), 0)


def _keys(x: Any) -> Any:
    a = -0.5
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: Any) -> Any:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def linear_filter(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """The triangle filter, against aliasing."""
    return _filtered(size, count, align_corners, factor, real, 2, _triangle)


def cubic_filter(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """Keys' cubic with a = -0.5 as a filter, against aliasing."""
    return _filtered(size, count, align_corners, factor, real, 4, _keys)


def lanczos_filter(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Taps:
    """Lanczos' windowed sinc with three lobes to a side, against aliasing."""
    return _filtered(size, count, align_corners, factor, real, 6, _lanczos)


def fixed_point(taps: Taps) -> tuple[Taps, int]:
    """Weights as integers, and by how many bits they are too large: how 8-bit images are resampled."""
    weights = taps.weights.copy()
    for tap in range(1, len(weights) if taps.counts is None else 0):  # an input taken twice, at the border, is one tap
        again = taps.indices[tap] == taps.indices[tap - 1]
        weights[tap] += np.where(again, weights[tap - 1], 0)
        weights[tap - 1] = np.where(again, 0, weights[tap - 1])
    largest = float(read(np.max(weights, initial=0)))
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return taps._replace(weights=np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)), bits
