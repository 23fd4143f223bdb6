"""Sampling at grids, and affine grids, against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ....support.differential import differential, outcome, warned

MODES = [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]


def image(T: Any, rank: int) -> Any:
    shape = (2, 3, *(5, 4, 3)[:rank])
    return (((T.arange(math.prod(shape)) * 37) % 101) / 100).reshape(shape).double()


def points(T: Any, rank: int) -> Any:
    """Points inside, outside and on the borders of the image."""
    shape = (2, *(3, 4, 2)[:rank], rank)
    grid = (((T.arange(math.prod(shape)) * 29) % 64) / 16 - 2).double()
    return grid.reshape(shape)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "rank"), MODES)
@differential(tolerance=1e-5)
def test_samples_and_derivatives(T: Any, mode: str, rank: int, padding: str, align_corners: bool) -> Any:
    x, grid = image(T, rank).requires_grad_(), points(T, rank).requires_grad_()
    result = T.nn.functional.grid_sample(x, grid, mode, padding, align_corners)
    first = T.autograd.grad((result**2).sum(), (x, grid), create_graph=True)
    total = (first[0] ** 2).sum() + (first[1] ** 2).sum()
    return result, [each.detach() for each in first], T.autograd.grad(total, (x, grid))


@pytest.mark.parametrize(("mode", "rank"), MODES)
@differential(tolerance=1e-5)
def test_single_precision(T: Any, mode: str, rank: int) -> Any:
    return T.nn.functional.grid_sample(image(T, rank).float(), points(T, rank).float(), mode, align_corners=False)


@differential
def test_numbered_modes(T: Any) -> Any:
    x, grid = image(T, 2), points(T, 2)
    return (
        T.grid_sampler(x, grid, 2, 1, True),
        T.grid_sampler_2d(x, grid, 0, 2, False),
        T.grid_sampler_3d(image(T, 3), points(T, 3), 1, 0, False),
    )


@differential
def test_no_data(T: Any) -> Any:
    sample = T.grid_sampler
    return (
        sample(T.ones(0, 1, 4, 4), T.ones(0, 2, 2, 2), 0, 0, False),
        sample(T.ones(1, 0, 4, 4), T.ones(1, 2, 2, 2), 0, 0, False),
        sample(T.ones(1, 1, 4, 4), T.ones(1, 0, 2, 2), 0, 0, False),
        sample(T.ones(1, 1, 4, 4, device="meta"), T.ones(1, 3, 2, 2, device="meta"), 0, 0, False),
    )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 4, 1), (2, 3, 4, 5, 2)])
@differential
def test_affine_grid(T: Any, size: tuple[int, ...], align_corners: bool) -> Any:
    rank = len(size) - 2
    theta = T.linspace(-1, 2, 2 * rank * (rank + 1), dtype=T.float64).reshape(2, rank, rank + 1).requires_grad_()
    grid = T.nn.functional.affine_grid(theta, size, align_corners)
    (first,) = T.autograd.grad((grid**3).sum(), theta, create_graph=True)
    return grid, first.detach(), *T.autograd.grad((first**2).sum(), theta), T.affine_grid_generator(theta, size, True)


@differential
def test_warnings(T: Any) -> Any:
    F = T.nn.functional
    words = "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0"
    theta = T.ones(1, 2, 3)
    return (
        warned(lambda: F.grid_sample(image(T, 2), points(T, 2)), words),
        warned(lambda: F.affine_grid(theta, (1, 1, 2, 2)), words),
        warned(lambda: F.affine_grid(theta, (1, 1, 2, 1), True), "changed for unit-size grids"),
    )


@differential
def test_errors(T: Any) -> Any:
    F = T.nn.functional
    x, grid, theta = T.ones(1, 1, 4, 4), T.ones(1, 2, 2, 2), T.ones(1, 2, 3)
    return (
        outcome(lambda: F.grid_sample(x, grid, "other"), "expected mode to be"),
        outcome(lambda: F.grid_sample(x, grid, padding_mode="other"), "expected padding_mode to be"),
        outcome(lambda: F.grid_sample(x, grid.double()), "expected scalar type Float but found Double"),
        outcome(lambda: F.grid_sample(x, T.ones(2, 2, 2, 2)), "expected grid and input to have same batch size"),
        outcome(lambda: F.grid_sample(x, T.ones(1, 2, 2, 3)), "expected grid to have size 2 in last dimension"),
        outcome(lambda: F.grid_sample(T.ones(1, 1, 0, 4), grid), "non-empty spatial dimensions"),
        outcome(lambda: F.grid_sample(x.long(), grid.long()), "not implemented for"),
        outcome(lambda: T.grid_sampler_3d(x, grid, 0, 0, False), "expected 5D input and grid"),
        outcome(lambda: T.grid_sampler(T.ones(1, 1, 2, 2, 2), T.ones(1, 2, 2, 2, 3), 2, 0, False), "bicubic"),
        outcome(lambda: F.affine_grid(theta.long(), (1, 1, 2, 2), True), "floating point type"),
        outcome(lambda: F.affine_grid(theta, (1, 1, 2), True), "only supports 4D and 5D sizes"),
        outcome(lambda: F.affine_grid(theta, (1, 1, 2, 2, 2), True), "3D affine matrices of shape Nx3x4"),
        outcome(lambda: F.affine_grid(theta, (1, 1, 2, 0), True), "non-zero, positive output size"),
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@differential
def test_points_that_are_not_numbers(T: Any, mode: str, padding: str) -> Any:
    """Eight points and more: PyTorch computes them as vectors."""
    image = T.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    points = [[T.nan, 0.1], [0.2, T.nan], [T.nan, T.nan], [T.inf, 0.0], [-T.inf, 0.3], [0.1, 0.2]] * 4
    grid = T.tensor(points).reshape(1, 4, 6, 2)
    return [T.nn.functional.grid_sample(image, grid, mode, padding, align_corners=each) for each in (False, True)]


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("count", [5, 800])
@differential
def test_points_in_space_that_are_not_numbers(T: Any, count: int, mode: str, padding: str) -> Any:
    image = T.arange(1.0, 65.0).reshape(1, 1, 4, 4, 4)
    points = [[T.nan, 0.1, 0.3], [0.2, T.nan, -0.4], [T.nan] * 3, [T.inf, 0.0, 0.1], [0.2, -T.inf, 0.3]] * count
    grid = T.tensor(points).reshape(1, 1, count, 5, 3)
    return T.nn.functional.grid_sample(image, grid, mode, padding, align_corners=False)
