"""Convolutions by windows of one element as products of matrices: right, and the same for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends.cpu.convolution import one_tap, tiers
from flambeau._backends.cpu.linalg.blas import openblas
from flambeau._core.geometry.moving_windows import Geometry

pytestmark = pytest.mark.skipif(openblas() is None, reason="NumPy's library is another one")

PLAIN = Geometry((1, 1), (0, 0), (1, 1), 1)

SHAPES = [
    (1, 64, 4, 4, 80),
    (4, 24, 16, 16, 48),
    (19, 24, 14, 14, 30),
    (3, 40, 9, 13, 17),
    (37, 8, 32, 32, 8),
    (2, 2048, 3, 3, 600),
]


def _operands(batch: int, channels: int, height: int, width: int, outputs: int) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng(0)
    shapes = (batch, channels, height, width), (outputs, channels, 1, 1), (outputs,), (batch, outputs, height, width)
    images, weight, bias, grad = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
    return images, weight, bias, grad


def _close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_values(shape: Any) -> None:
    images, weight, bias, grad = _operands(*shape)
    sizes, matrix = images.shape[2:], weight[:, :, 0, 0].astype(np.float64)
    _close(
        one_tap.correlate(images, weight, bias, sizes, PLAIN, False),
        np.einsum("oc,nchw->nohw", matrix, images) + bias[:, None, None],
    )
    _close(
        one_tap.correlate_transposed(grad, weight, None, sizes, PLAIN, False), np.einsum("oc,nohw->nchw", matrix, grad)
    )
    found = one_tap.weight_gradient(images, grad, (1, 1), PLAIN, False)
    if sizes[0] * sizes[1] <= tiers.FEW_POSITIONS:
        assert found is None
    else:
        _close(found[:, :, 0, 0], np.einsum("nohw,nchw->oc", grad.astype(np.float64), images))


def test_long_rows_of_small_products_are_summed_in_pieces() -> None:
    images, _, _, grad = _operands(1, 8, 64, 64, 8)
    images[...], grad[...] = np.float32(0.1), np.float32(1)
    found = one_tap.weight_gradient(images, grad, (1, 1), PLAIN, False)
    np.testing.assert_allclose(found, 4096 * np.float64(np.float32(0.1)), rtol=2e-6)


def test_images_that_lie_apart_are_read_in_place() -> None:
    images, weight, _, grad = _operands(4, 48, 16, 16, 24)
    half, first = images[::2, ::2], np.ascontiguousarray(weight[:, :24])
    _close(
        one_tap.correlate(half, weight[:, :24], None, (16, 16), PLAIN, False),
        one_tap.correlate(np.ascontiguousarray(half), first, None, (16, 16), PLAIN, False),
    )
    turned = np.ascontiguousarray(weight.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    _close(
        one_tap.correlate_transposed(grad, turned, None, (16, 16), PLAIN, False),
        one_tap.correlate_transposed(grad, weight, None, (16, 16), PLAIN, False),
    )


@pytest.mark.parametrize(
    "geometry",
    [Geometry((2, 2), (0, 0), (1, 1), 1), Geometry((1, 1), (1, 1), (1, 1), 1), Geometry((1, 1), (0, 0), (1, 1), 2)],
)
def test_other_geometries_are_left_to_others(geometry: Geometry) -> None:
    images, weight, _, _ = _operands(4, 24, 16, 16, 48)
    assert one_tap.correlate(images, weight, None, (16, 16), geometry, False) is None


@pytest.mark.parametrize("what", ["rows that lie apart", "channels innermost", "float64"])
def test_other_layouts_are_left_to_others(what: str) -> None:
    images, weight, _, _ = _operands(4, 24, 16, 16, 48)
    if what == "rows that lie apart":
        images = images[:, :, :, ::2]
    elif what == "channels innermost":
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    else:
        images, weight = images.astype(np.float64), weight.astype(np.float64)
    assert one_tap.correlate(images, weight, None, images.shape[2:], PLAIN, False) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_do_not_depend_on_threads(shape: Any) -> None:
    images, weight, bias, grad = _operands(*shape)
    sizes, before = images.shape[2:], flambeau.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            flambeau.set_num_threads(threads)
            results = (
                tiers.correlate(images, weight, bias, sizes, PLAIN, False),
                tiers.correlate_transposed(grad, weight, None, sizes, PLAIN, False),
                one_tap.weight_gradient(images, grad, (1, 1), PLAIN, False),
            )
            found.append([each.tobytes() for each in results if each is not None])
    finally:
        flambeau.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_layers_use_them() -> None:
    images, weight, _, _ = _operands(4, 24, 16, 16, 48)
    found = flambeau.conv2d(flambeau.from_numpy(images), flambeau.from_numpy(weight))
    expected = one_tap.correlate(images, weight, None, (16, 16), PLAIN, False)
    assert found.numpy().tobytes() == expected.tobytes()
