"""Convolutions by generated code that has the bits of the vendor's library, without the reorders around its kernels.

The library's kernels want images, weights and results in blocks of 16 channels. Where channels or images are few,
bringing them there and back, and multiplying the zeros that fill the blocks up, takes longer than all the rest.
That both sum up in the same order is seen, not assumed: they compute an example before generated code is used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.conv_blocks import BLOCK, Sizes, Tile, correlate_blocks
from ...._codegen.machine.engine import engine
from ...._codegen.shares import MULTIPLICATIONS
from ...._core.geometry.moving_windows import Geometry, Shape
from ...._core.process.threads import num_threads
from ..memory.workspace import Workspace
from ..runtime.autotune import Way, is_tuning, quickest

Array = Any
Vendor = Callable[[Array, Array, "Array | None", Geometry], Array]

_PLAIN = (1, 1), (0, 0), (1, 1), 1
"""The geometry of windows that move in steps of 1 over images without padding."""

_TILES = [Tile(*each) for each in ((6, 4), (5, 4), (4, 4), (8, 3), (8, 2), (4, 2), (8, 1), (4, 1))]
_MOST_PANEL = 1 << 18
"""Elements of the panel of an image: more would not stay in the second cache."""
_LITTLE = 1 << 22
"""Up to so many multiplications bringing everything into blocks takes the library as long as to multiply."""
_MANY_ZEROS = (4, 3)
"""From that ratio on of channels, with and without zeros, the zeros take longer than less regular reads."""
_OF_COLOURS = 3
"""So few channels of an image are not filled up."""
_OWN = "blocks"
"""The name of generated code among the ways to convolve."""


class _Plan(NamedTuple):
    run: Any
    sizes: Array
    shape: Shape


def correlate(
    input: Array, weight: Array, bias: Array | None, geometry: Geometry, workspace: Workspace, vendor: Vendor
) -> Array | None:
    """What `vendor` makes of images and weights; None: it is to do that itself."""
    arrays = (input, weight) if bias is None else (input, weight, bias)
    if geometry != _PLAIN or not all(each.dtype == np.float32 and each.flags.c_contiguous for each in arrays):
        return None
    plan = _plan(input.shape, weight.shape, bias is not None, num_threads(), vendor, is_tuning())
    if plan is None:
        return None
    return workspace.run(plan.run, workspace.empty(plan.shape, input.dtype), input, weight, plan.sizes, *arrays[2:])


@functools.lru_cache(maxsize=256)
def _plan(shape: Shape, weight_shape: Shape, biased: bool, threads: int, vendor: Vendor, timed: bool) -> _Plan | None:
    """Images and weights of these shapes; None: they are left to the vendor. `timed`: which is quicker is tried out."""
    (batch, channels, height, width), (outputs, _, taps_down, taps) = shape, weight_shape
    rows, columns = height - taps_down + 1, width - taps + 1
    work = batch * outputs * channels * taps_down * taps * rows * columns
    parts = 1 if batch >= threads else min(-(-threads // batch), max(work // batch // MULTIPLICATIONS, 1))
    sizes = Sizes(batch, parts, channels, height, width, outputs, taps_down, taps, rows, columns)
    tile = _tile(outputs, rows * columns)
    if tile is None or sizes.panel > _MOST_PANEL or engine().register_bytes < 64:
        return None
    if not timed and not _pays_off(sizes, work):
        return None
    lanes = 1 << (min(columns, BLOCK).bit_length() - 1)
    plan = _Plan(correlate_blocks(*tile, lanes, biased), np.array(sizes, np.int64), (batch, outputs, rows, columns))
    example = [_example(each) for each in (shape, weight_shape, weight_shape[:1])]
    if not _has_the_same_bits(plan, example, biased, vendor):
        return None
    if timed and quickest("convolution", (shape, weight_shape, biased, threads), _ways(plan, example, vendor)) != _OWN:
        return None
    return plan


def _ways(plan: _Plan, example: list[Array], vendor: Vendor) -> dict[str, Way]:
    out, geometry = np.empty(plan.shape, np.float32), Geometry(*_PLAIN)
    input, weight, bias = example
    return {
        _OWN: lambda: lambda: plan.run(out, input, weight, plan.sizes, bias),
        "library": lambda: lambda: vendor(input, weight, bias, geometry),
    }


def _pays_off(sizes: Sizes, work: int) -> bool:
    """Whether the library would multiply many zeros, or multiply so little that its reorders count."""
    channels, outputs = sizes.channels, sizes.outputs
    in_blocks = _in_blocks(outputs) * (channels if channels <= _OF_COLOURS else _in_blocks(channels))
    return in_blocks * _MANY_ZEROS[1] > channels * outputs * _MANY_ZEROS[0] or work <= _LITTLE


def _in_blocks(channels: int) -> int:
    return -(-channels // BLOCK) * BLOCK


def _tile(outputs: int, positions: int) -> Tile | None:
    """The tile with which a result takes the fewest steps: one multiplies, reads numbers and vectors, and goes on."""
    fitting = [each for each in _TILES if each.outputs <= outputs and each.positions <= positions]

    def steps(tile: Tile) -> int:
        tiles = -(-outputs // tile.outputs) * -(-positions // tile.positions)
        return tiles * (tile.outputs * tile.vectors + 2 * sum(tile))

    return min(fitting, key=steps, default=None)


def _has_the_same_bits(plan: _Plan, example: list[Array], biased: bool, vendor: Vendor) -> bool:
    """Whether an example comes out the same."""
    input, weight, bias = example
    result = plan.run(np.empty(plan.shape, np.float32), input, weight, plan.sizes, bias)
    expected = vendor(input, weight, bias if biased else None, Geometry(*_PLAIN))
    return expected is not None and np.array_equal(result.view(np.int32), expected.view(np.int32))


def _example(shape: Shape) -> Array:
    """Numbers of all sizes up to 1, with both signs, none of which is rounded."""
    return np.sin(np.arange(np.prod(shape)) * 1.7).astype(np.float32).reshape(shape)
