"""Generated kernels of `grid_sample` beside NumPy's and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._backends.tiers import available, numpy_only

pytestmark = pytest.mark.skipif(not available(), reason="code cannot be generated here")

CASES = [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]


def _run(T: Any, mode: str, rank: int, padding: str, align: bool, wanted: tuple[bool, bool], dtype: str) -> list[Any]:
    source = np.random.RandomState(rank)
    extents = (5, 4, 3)[:rank]
    image = source.standard_normal((2, 3, *extents)).astype(dtype)
    points = source.uniform(-2.3, 2.3, (2, *(3, 7, 2)[:rank], rank)).astype(dtype)  # whole vectors, and some beside
    x, grid = (T.tensor(each, requires_grad=need) for each, need in zip((image, points), wanted, strict=True))
    result = T.nn.functional.grid_sample(x, grid, mode, padding, align)
    grad = T.tensor(source.standard_normal(result.shape).astype(dtype))
    leaves = [each for each in (x, grid) if each.requires_grad]
    return [result, *T.autograd.grad(result, leaves, grad)]


def _compare(*arguments: Any) -> None:
    tolerance = 2e-5 if "float32" in arguments else 1e-13
    ours, theirs = _run(flambeau, *arguments), _run(pytorch, *arguments)
    with numpy_only():
        plain = _run(flambeau, *arguments)
    for one, two, three in zip(ours, theirs, plain, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), tolerance, tolerance)
        np.testing.assert_allclose(one.detach().numpy(), three.detach().numpy(), tolerance / 10, tolerance / 10)


@pytest.mark.parametrize(("padding", "align"), [("zeros", False), ("border", True), ("reflection", False)])
@pytest.mark.parametrize(("mode", "rank"), CASES)
def test_samples_and_gradients(mode: str, rank: int, padding: str, align: bool) -> None:
    _compare(mode, rank, padding, align, (True, True), "float32")


def test_reflection_at_corners() -> None:
    _compare("bilinear", 2, "reflection", True, (True, True), "float64")


@pytest.mark.parametrize("wanted", [(True, False), (False, True)], ids=str)
def test_one_gradient_alone(wanted: tuple[bool, bool]) -> None:
    _compare("bilinear", 2, "zeros", True, wanted, "float64")
