"""Samples of images at the points of a grid, each for all its channels, several points at a time; and their gradients.

The arithmetic is that of the NumPy kernels in `_ops/nn/image/grid_sample.py`, whose numbers of modes these are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..._core.geometry.sample_points import pixel_of_nan, tap_of_nan
from .. import constants
from ..arrays import Arguments
from ..build import Builder, Value, Variable
from ..functions import fmod
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import I32, SCALARS, Scalar

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, _BORDER, REFLECTION = range(3)
_OFFSETS = {BILINEAR: (0, 1), NEAREST: (0,), BICUBIC: (-1, 0, 1, 2)}
_TOGETHER = {BILINEAR: 8, NEAREST: 8, BICUBIC: 1}
"""So many points are sampled together; of sixteen taps each, the registers hold those of one."""


class _Axis(NamedTuple):
    """What a point takes along one dimension of the image: for each tap, index, existence, weight and its slope."""

    indices: list[Value]
    exist: list[Value]
    weights: list[Value]
    slopes: list[Value]
    move: Value
    """By what factor a move of the grid moves the point."""


def _inside(c: Builder, place: Value, size: Value, rank: int, padding: int, align: bool) -> tuple[Value, Value]:
    slope = c.constant(place.type, 1.0)
    if padding == ZEROS:
        return place, slope
    zero = c.constant(place.type, 0.0)
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if align else (-0.5, size)
        usual = span > 0.0
        safe = c.select(usual, span, 1.0)
        away = place - low
        slope = c.select(away < 0.0, -slope, slope)
        away = c.abs(away)
        rest = fmod(c, away, safe)
        turns = c.floor(away / safe)
        odd = turns - c.floor(turns / 2.0) * 2.0 == 1.0
        place = c.select(usual, c.select(odd, span - rest + low, rest + low), zero)
        slope = c.select(usual, c.select(odd, -slope, slope), zero)
    slope = c.select((place <= 0.0) | (place >= size - 1.0), zero, slope)
    moved = c.minimum(c.maximum(place, 0.0), size - 1.0)
    if (pixel := pixel_of_nan(rank, size - 1.0)) is not None:
        moved = c.select(place != place, pixel, moved)
    return moved, slope


def _cubic(part: Value, mirrored: Value) -> tuple[list[Value], list[Value]]:
    """The weights of four taps, and their slopes."""
    a = -0.75

    def near(x: Value) -> Value:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Value) -> Value:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near_slope(x: Value) -> Value:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far_slope(x: Value) -> Value:
        return (3 * a * x - 10 * a) * x + 8 * a

    weights = [far(part + 1.0), near(part), near(mirrored), far(mirrored + 1.0)]
    return weights, [far_slope(part + 1.0), near_slope(part), -near_slope(mirrored), -far_slope(mirrored + 1.0)]


def _axis(c: Builder, normalised: Value, extent: Value, rank: int, mode: int, padding: int, align: bool) -> _Axis:
    size = c.convert(extent, normalised.element)
    if align:
        place, move = (normalised + 1.0) / 2.0 * (size - 1.0), (size - 1.0) / 2.0
    else:
        place, move = ((normalised + 1.0) * size - 1.0) / 2.0, size / 2.0
    if mode != BICUBIC:
        place, moved = _inside(c, place, size, rank, padding, align)
        move = move * moved
    before = c.rint(place) if mode == NEAREST else c.floor(place)
    first = c.select(before != before, tap_of_nan(padding == ZEROS), before)  # with NaN as weight
    taps = [first + float(offset) for offset in _OFFSETS[mode]]
    if mode == BICUBIC:
        taps = [_inside(c, each, size, rank, padding, align)[0] for each in taps]
    exist = [(each >= 0.0) & (each < size) for each in taps]
    indices = [c.select(here, c.convert(each, extent.type), 0) for here, each in zip(exist, taps, strict=True)]
    part = place - before
    one = c.constant(part.type, 1.0)
    if mode == NEAREST:
        weights, slopes = [one], [one - one]
    elif mode == BILINEAR:
        weights, slopes = [1.0 - part, part], [-one, one]
    else:
        weights, slopes = _cubic(part, 1.0 - part)
    return _Axis(indices, exist, weights, slopes, move)


class _Tap(NamedTuple):
    numbers: tuple[int, ...]
    pixel: Value
    exists: Value
    weight: Value


def _product(factors: Sequence[Value]) -> Value:
    total = factors[-1]
    for each in factors[-2::-1]:
        total = total * each
    return total


def _taps(axes: Sequence[_Axis], steps: Sequence[Value]) -> list[_Tap]:
    """Every pixel that a point takes: its place in the flattened image, whether it exists, and its weight."""
    taps = []
    for numbers in itertools.product(*(range(len(axis.indices)) for axis in axes)):
        chosen = list(zip(axes, numbers, strict=True))
        index = chosen[0][0].indices[numbers[0]] * steps[0]
        exists = chosen[0][0].exist[numbers[0]]
        for (axis, number), step in zip(chosen[1:], steps[1:], strict=True):
            index = index + axis.indices[number] * step
            exists = exists & axis.exist[number]
        taps.append(_Tap(numbers, index, exists, _product([axis.weights[number] for axis, number in chosen])))
    return taps


def _geometry(arguments: Arguments, first: int, rank: int) -> list[Value]:
    """The numbers (batch, channels, points, extents...) of a call."""
    return [arguments.integer(first + number) for number in range(3 + rank)]


def _points(
    c: Builder,
    scalar: Scalar,
    grid: Value,
    point: Value,
    lanes: int,
    extents: Sequence[Value],
    how: tuple[int, int, bool],
) -> tuple[list[_Axis], list[_Tap]]:
    """What `lanes` points take from `point` on; places in an image are of the type of the extents."""
    rank = len(extents)
    if lanes == 1:
        normalised = [c.load(grid, scalar, point * rank + number) for number in range(rank)]
    else:
        mixed = c.load(grid, scalar, point * rank, lanes * rank)
        normalised = [c.shuffle(mixed, None, range(number, lanes * rank, rank)) for number in range(rank)]
    axes = [_axis(c, normalised[rank - 1 - dim], extents[dim], rank, *how) for dim in range(rank)]
    one = c.constant(extents[0].type, 1)
    return axes, _taps(axes, [math.prod(extents[dim + 1 :], start=one) for dim in range(rank)])


def _pixels(c: Builder, scalar: Scalar, plane: Value, places: Value) -> Value:
    """The pixels of a plane at the places of several points."""
    if places.lanes == 1:
        return c.load(plane, scalar, places)
    return c.gathered([c.load(plane, scalar, c.lane(places, number)) for number in range(places.lanes)])


@kernel
def sample_grid(b: Builder, arguments: Arguments, dtype: str, rank: int, mode: int, padding: int, align: bool) -> None:
    """(out, x, grid, batch, channels, points, extents...); an image has fewer than 2**31 pixels."""
    scalar = SCALARS[dtype]
    out, x, grid = (arguments.array(number).data for number in range(3))
    batch, channels, points, *extents = _geometry(arguments, 3, rank)
    grain = steps_worth(b, channels, ELEMENTS // 8)
    captured = (out, x, grid, channels, points, *extents)
    with b.parallel(batch * points, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, grid_, channels_, points_, *extents_ = inside
        least = c.larger(points_, 1)  # there may be none
        with c.loop(begin // least, (end + least - 1) // least) as image:
            start = image * points_
            area = math.prod(extents_, start=c.integer(1))
            narrow = [c.convert(extent, I32) for extent in extents_]
            first, last = c.larger(begin - start, 0), c.smaller(end - start, points_)
            for place, lanes in c.lanes(first, last, _TOGETHER[mode]):
                _, taps = _points(c, scalar, grid_, start + place, lanes, narrow, (mode, padding, align))
                with c.loop(0, channels_) as channel:
                    plane = image * channels_ + channel
                    image_ = c.at(x_, scalar, plane * area)
                    total = c.constant(constants.vector(scalar.compute, lanes), 0.0)
                    for tap in taps:
                        value = _pixels(c, scalar, image_, tap.pixel)
                        if rank == 3:  # a pixel that does not exist adds nothing, even where its weight is NaN
                            total = total + c.select(tap.exists, value * tap.weight, 0.0)
                        else:
                            total = total + c.select(tap.exists, value, 0.0) * tap.weight
                    c.store(out_, scalar, plane * points_ + place, total)


@kernel
def sample_grid_backward(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    rank: int,
    mode: int,
    padding: int,
    align: bool,
    mask: tuple[bool, bool],
) -> None:
    """(of_x, of_grid, grad, x, grid, batch, channels, points, extents...): of_x is zero before; images in parallel."""
    scalar = SCALARS[dtype]
    of_x, of_grid, grad, x, grid = (arguments.array(number).data for number in range(5))
    batch, channels, points, *extents = _geometry(arguments, 5, rank)
    captured = (of_x, of_grid, grad, x, grid, channels, points, *extents)
    slanted = mask[1] and mode != NEAREST
    grain = steps_worth(b, points * channels, ELEMENTS // 8)
    with b.parallel(batch, grain, *captured, unlock=True) as (c, begin, end, inside):
        of_x_, of_grid_, grad_, x_, grid_, channels_, points_, *extents_ = inside
        area = math.prod(extents_, start=c.integer(1))
        with c.loop(begin, end) as image, c.loop(0, points_) as place:
            point = image * points_ + place
            axes, taps = _points(c, scalar, grid_, point, 1, extents_, (mode, padding, align))
            sums: list[Variable] = [c.variable(scalar.compute, 0.0) for _ in taps] if slanted else []
            with c.loop(0, channels_) as channel:
                plane = image * channels_ + channel
                wanted = c.load(grad_, scalar, plane * points_ + place)
                pixels, target = c.at(x_, scalar, plane * area), c.at(of_x_, scalar, plane * area)
                for number, tap in enumerate(taps):
                    if slanted:
                        product = c.load(pixels, scalar, tap.pixel) * wanted
                        sums[number].add(c.select(tap.exists, product, 0.0))
                    if mask[0]:
                        with c.when(tap.exists):
                            now = c.load(target, scalar, tap.pixel)
                            c.store(target, scalar, tap.pixel, now + wanted * tap.weight)
            if mask[1]:
                for dim, axis in enumerate(axes):
                    total = c.constant(scalar.compute, 0.0)
                    for tap, value in zip(taps, sums, strict=False):
                        factors = [
                            (each.slopes if other == dim else each.weights)[number]
                            for other, (each, number) in enumerate(zip(axes, tap.numbers, strict=True))
                        ]
                        total = total + value.value * _product(factors)
                    c.store(of_grid_, scalar, point * rank + (rank - 1 - dim), total * axis.move)
