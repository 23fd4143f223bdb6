"""Convolutions by blocks of channels: right everywhere, and with the library's bits where it has such kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.convolution import blocks as conv_blocks
from flambeau._backends.cpu.memory.workspace import DIRECT
from flambeau._backends.cpu.onednn.kernels import _convolution
from flambeau._codegen.images.conv_blocks import Sizes, correlate_blocks
from flambeau._codegen.machine.engine import engine
from flambeau._core.geometry.moving_windows import Geometry

PLAIN = Geometry((1, 1), (0, 0), (1, 1), 1)

SHAPES = [
    ((1, 1, 28, 28), (20, 1, 5, 5)),
    ((1, 20, 12, 12), (64, 20, 5, 5)),
    ((3, 10, 12, 12), (20, 10, 5, 5)),
    ((2, 33, 9, 11), (21, 33, 2, 3)),
    ((1, 40, 9, 8), (37, 40, 3, 4)),
    ((2, 64, 6, 6), (9, 64, 3, 2)),
]

needs_library = pytest.mark.skipif(
    not onednn.available() or "+avx512f" not in engine().features, reason="the library has no such kernels here"
)


def _operands(shape: Any, weight_shape: Any, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(each, dtype=np.float32) for each in (shape, weight_shape, weight_shape[:1])]


@pytest.mark.parametrize(("shape", "weight_shape"), SHAPES)
@pytest.mark.parametrize("parts", [1, 3])
def test_sums_are_right(shape: Any, weight_shape: Any, parts: int) -> None:
    input, weight, bias = _operands(shape, weight_shape)
    windows = np.lib.stride_tricks.sliding_window_view(input.astype(np.float64), weight_shape[2:], (2, 3))
    expected = np.einsum("ncyxij,ocij->noyx", windows, weight) + bias[:, None, None]
    rows, columns = expected.shape[2:]
    sizes = Sizes._make((shape[0], parts, *shape[1:], weight_shape[0], *weight_shape[2:], rows, columns))
    for tile, lanes in (((4, 1), 4), ((8, 1), 1)):
        out = np.empty(expected.shape, np.float32)
        correlate_blocks(*tile, lanes, True)(out, input, weight, np.array(sizes, np.int64), bias)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@needs_library
@pytest.mark.parametrize(("shape", "weight_shape"), SHAPES)
@pytest.mark.parametrize("biased", [True, False])
def test_bits_are_those_of_the_library(shape: Any, weight_shape: Any, biased: bool) -> None:
    for seed in range(8):
        input, weight, bias = _operands(shape, weight_shape, seed)
        bias = bias if biased else None
        found = conv_blocks.correlate(input, weight, bias, PLAIN, DIRECT, _convolution)
        expected = onednn.convolution(input, weight, bias, onednn.Geometry(*PLAIN))
        assert found is not None
        np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))


@needs_library
def test_a_library_with_other_bits_does_it_itself() -> None:
    input, weight, bias = _operands(*SHAPES[0])

    def another(*args: Any) -> Any:
        result = _convolution(*args)
        return np.nextafter(result, np.float32(2))

    assert conv_blocks.correlate(input, weight, bias, PLAIN, DIRECT, another) is None


@needs_library
@pytest.mark.parametrize(
    "geometry",
    [Geometry((2, 2), (0, 0), (1, 1), 1), Geometry((1, 1), (1, 1), (1, 1), 1), Geometry((1, 1), (0, 0), (2, 2), 1)],
)
def test_windows_that_move_otherwise_are_left_to_the_library(geometry: Geometry) -> None:
    input, weight, bias = _operands(*SHAPES[0])
    assert conv_blocks.correlate(input, weight, bias, geometry, DIRECT, _convolution) is None


@needs_library
def test_much_to_multiply_in_whole_blocks_is_left_to_the_library() -> None:
    input, weight, bias = _operands((2, 32, 30, 30), (64, 32, 3, 3))
    assert conv_blocks.correlate(input, weight, bias, PLAIN, DIRECT, _convolution) is None
