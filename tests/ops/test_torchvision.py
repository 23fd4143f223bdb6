"""Twins of torchvision's operators, beside the same written point by point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.ops import _torchvision as twins


def _interpolated(image: Any, y: float, x: float) -> Any:
    _, height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low_y, low_x = int(y), int(x)
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    a, b = y - low_y, x - low_x
    upper = (1 - b) * image[:, low_y, low_x] + b * image[:, low_y, high_x]
    lower = (1 - b) * image[:, high_y, low_x] + b * image[:, high_y, high_x]
    return (1 - a) * upper + a * lower


def _aligned(
    images: Any, rois: Any, scale: float, bins: tuple[int, int], ratio: int, offset: float, least: float
) -> Any:
    out = np.zeros((len(rois), images.shape[1], *bins))
    for number, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (each * scale - offset for each in corners)
        width, height = max(right - left, least or -math.inf), max(bottom - top, least or -math.inf)
        bin_h, bin_w = height / bins[0], width / bins[1]
        many_y = ratio if ratio > 0 else math.ceil(bin_h)
        many_x = ratio if ratio > 0 else math.ceil(bin_w)
        for i in range(bins[0]):
            for j in range(bins[1]):
                points = [
                    _interpolated(
                        images[int(image)],
                        top + i * bin_h + (a + 0.5) * bin_h / many_y,
                        left + j * bin_w + (b + 0.5) * bin_w / many_x,
                    )
                    for a in range(many_y)
                    for b in range(many_x)
                ]
                out[number, :, i, j] = sum(points) / max(many_y * many_x, 1)
    return out


ROIS = [[0, 1.0, 2.0, 9.0, 11.0], [1, -3.0, 0.0, 30.0, 7.0], [0, 4.0, 4.0, 4.5, 4.2], [1, 0.0, 0.0, 15.0, 15.0]]


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("is_aligned", [True, False])
def test_roi_align(is_aligned: bool, ratio: int) -> None:
    flambeau.manual_seed(0)
    images = flambeau.randn(2, 3, 8, 10, dtype=flambeau.float64)
    rois = flambeau.tensor(ROIS, dtype=flambeau.float64)
    found = twins.roi_align(images, rois, 0.5, 2, 3, ratio, is_aligned)
    expected = _aligned(images.numpy(), ROIS, 0.5, (2, 3), ratio, *((0.5, 0.0) if is_aligned else (0.0, 1.0)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)
    none = twins.roi_align(images, rois[:0], 0.5, 2, 3, ratio, is_aligned)
    assert none.shape == (0, 3, 2, 3)


def test_ps_roi_align_takes_each_bin_from_channels_of_its_own() -> None:
    images = flambeau.randn(2, 12, 8, 10, dtype=flambeau.float64)
    rois = flambeau.tensor(ROIS, dtype=flambeau.float64)
    found, mapping = twins.ps_roi_align(images, rois, 0.5, 2, 3, 2)
    whole = _aligned(images.numpy(), ROIS, 0.5, (2, 3), 2, 0.5, 0.0)
    assert mapping.shape == found.shape == (4, 2, 2, 3)
    for channel in range(2):
        for i in range(2):
            for j in range(3):
                number = (channel * 2 + i) * 3 + j
                assert mapping[0, channel, i, j] == number
                np.testing.assert_allclose(
                    found[:, channel, i, j].numpy(), whole[:, number, i, j], rtol=1e-9, atol=1e-12
                )


def test_gradients_of_pooling() -> None:
    images = flambeau.randn(2, 6, 5, 6, dtype=flambeau.float64, requires_grad=True)
    rois = flambeau.tensor(ROIS, dtype=flambeau.float64)
    assert flambeau.autograd.gradcheck(
        lambda x: twins.roi_align(x, rois, 0.5, 2, 2, 2, True), (images,), fast_mode=True
    )
    assert flambeau.autograd.gradcheck(
        lambda x: twins.ps_roi_align(x, rois, 0.5, 2, 3, -1)[0], (images,), fast_mode=True
    )
    twins.register()
    operators = flambeau.ops.torchvision
    grad = flambeau.randn(4, 6, 2, 2, dtype=flambeau.float64)
    (expected,) = flambeau.autograd.grad(twins.roi_align(images, rois, 0.5, 2, 2, 2, True), images, grad)
    found = operators._roi_align_backward(grad, rois, 0.5, 2, 2, 2, 6, 5, 6, 2, True)
    assert flambeau.allclose(found, expected)
    nothing = operators._roi_align_backward(grad[:0], rois[:0], 0.5, 2, 2, 2, 6, 5, 6, 2, True)
    assert nothing.shape == images.shape
    assert not nothing.any()
    pooled, where = operators.roi_pool(images, rois, 0.5, 2, 2)
    (expected,) = flambeau.autograd.grad(pooled, images, grad)
    found = operators._roi_pool_backward(grad, rois, where, 0.5, 2, 2, 2, 6, 5, 6)
    assert flambeau.allclose(found, expected)
    pooled, mapping = operators.ps_roi_pool(images, rois, 0.5, 2, 3)
    grad = flambeau.randn(pooled.shape, dtype=flambeau.float64)
    (expected,) = flambeau.autograd.grad(pooled, images, grad)
    found = operators._ps_roi_pool_backward(grad, rois, mapping, 0.5, 2, 3, 2, 6, 5, 6)
    assert flambeau.allclose(found, expected)


def test_roi_pool_finds_the_largest_elements() -> None:
    images = flambeau.arange(2 * 4 * 6).reshape(1, 2, 4, 6).double()
    pooled, where = twins.roi_pool(
        images, flambeau.tensor([[0, 0.0, 0.0, 3.0, 3.0], [0, 9.0, 9.0, 9.0, 9.0]]).double(), 1.0, 2, 2
    )
    assert pooled[0, 0].tolist() == [[7.0, 9.0], [19.0, 21.0]]
    assert where[0, 1].tolist() == [[7, 9], [19, 21]]
    assert pooled[1].abs().sum() == 0
    assert (where[1] == -1).all()


def test_nms_keeps_the_best_of_boxes_that_overlap() -> None:
    flambeau.manual_seed(0)
    corners = flambeau.rand(60, 2) * 10
    boxes = flambeau.cat([corners, corners + 1 + flambeau.rand(60, 2) * 3], 1)
    scores = flambeau.rand(60)
    left, expected = sorted(range(60), key=lambda number: -scores[number].item()), []
    while left:
        best, *left = left
        expected.append(best)
        left = [other for other in left if _overlap(boxes[best].tolist(), boxes[other].tolist()) <= 0.3]
    assert twins.nms(boxes, scores, 0.3).tolist() == expected
    assert twins.nms(boxes[:0], scores[:0], 0.3).tolist() == []
    with pytest.raises(RuntimeError, match="boxes should have 4 elements in dimension 1"):
        twins.nms(boxes[:, :3], scores, 0.3)


def _overlap(a: list[float], b: list[float]) -> float:
    common = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def _deformed(*inputs: Any, groups: int = 1, offset_groups: int = 1) -> Any:
    return twins.deform_conv2d(*inputs, 2, 1, 1, 1, 1, 2, groups, offset_groups, True)


def test_deform_conv2d() -> None:
    flambeau.manual_seed(0)
    float64 = {"dtype": flambeau.float64}
    images, weight, bias = (flambeau.randn(*shape, **float64) for shape in ((2, 4, 7, 8), (6, 2, 3, 3), (6,)))
    plain = flambeau.nn.functional.conv2d(images, weight, bias, (2, 1), 1, (1, 2), 2)
    where = (2, 2 * 2 * 9, *plain.shape[2:])
    mask = flambeau.ones(2, 2 * 9, *plain.shape[2:], **float64)
    still = _deformed(images, weight, flambeau.zeros(where, **float64), mask, bias, groups=2, offset_groups=2)
    assert flambeau.allclose(still, plain)
    # One column to the right everywhere: what the convolution sees of an image that was moved to the left.
    step = flambeau.zeros(2, 2, 9, 2, *plain.shape[2:], **float64)
    step[:, :, :, 1] = 1
    moved = _deformed(images, weight, step.reshape(where), mask, bias, groups=2, offset_groups=2)
    shifted = flambeau.nn.functional.pad(images, (1, 2, 1, 1))[..., 1:]
    expected = flambeau.nn.functional.conv2d(shifted, weight, bias, (2, 1), 0, (1, 2), 2)
    assert flambeau.allclose(moved[..., :-1], expected[..., : moved.shape[-1] - 1])
    leaves = [
        flambeau.randn(1, 2, 4, 4, **float64),
        flambeau.randn(2, 2, 3, 3, **float64),
        flambeau.rand(1, 18, 2, 2, **float64) * 0.8 + 0.1,
        flambeau.rand(1, 9, 2, 2, **float64),
        flambeau.randn(2, **float64),
    ]
    leaves = [each.requires_grad_() for each in leaves]
    assert flambeau.autograd.gradcheck(_deformed, leaves)
    twins.register()
    grad = flambeau.randn(_deformed(*leaves).shape, **float64)
    expected = flambeau.autograd.grad(_deformed(*leaves), leaves, grad)
    found = flambeau.ops.torchvision._deform_conv2d_backward(grad, *leaves, 2, 1, 1, 1, 1, 2, 1, 1, True)
    assert all(map(flambeau.allclose, found, expected))


def test_the_compiled_part_is_replaced() -> None:
    flambeau.ops.load_library("/lib/torchvision/_C.so")
    assert flambeau.ops.torchvision._cuda_version() == -1
    with pytest.raises(NotImplementedError, match="no twin"):
        flambeau.ops.torchvision.qnms(flambeau.ones(1, 4), flambeau.ones(1), 0.5)
