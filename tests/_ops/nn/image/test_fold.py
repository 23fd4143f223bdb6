"""Sliding blocks as columns, and back, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ....support.differential import differential, outcome, supported

OPTIONS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "padding": (1, 0)},
    {"kernel_size": [2, 3], "stride": (2, 1), "dilation": (1, 2), "padding": 1},
    {"kernel_size": 1, "stride": 3},
]


def numbers(T: Any, *shape: int) -> Any:
    return (T.arange(math.prod(shape), dtype=T.float64) * 1.7).sin().reshape(shape)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 6, 7), (3, 6, 7), (0, 3, 6, 7)])
@differential
def test_there_and_back(T: Any, shape: tuple[int, ...], options: dict[str, Any]) -> Any:
    x = numbers(T, *shape).requires_grad_()
    columns = T.nn.functional.unfold(x, **options)
    images = T.nn.functional.fold(columns**2, (6, 7), **options)
    (grad,) = T.autograd.grad((images**2).sum(), x, create_graph=True)
    return columns, images, grad.detach(), T.autograd.grad((grad**2).sum(), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "bool", "int64"])
@differential
def test_dtypes(T: Any, dtype: str) -> Any:
    x = (numbers(T, 1, 2, 4, 4) * 4).round().to(getattr(T, dtype))
    columns = (numbers(T, 1, 8, 9) * 4).round().to(getattr(T, dtype))
    return supported(lambda: T.nn.functional.unfold(x, 2)), supported(lambda: T.nn.functional.fold(columns, 4, 2))


@differential
def test_views(T: Any) -> Any:
    x = numbers(T, 4, 6, 3, 2).permute(3, 2, 0, 1)
    columns = numbers(T, 12, 8, 2).permute(2, 1, 0)
    meta = T.empty(1, 2, 4, 4, device="meta")
    return (
        T.nn.functional.unfold(x, 2),
        T.nn.functional.unfold(x.to(memory_format=T.channels_last), 2, padding=1),
        T.nn.functional.fold(columns, (4, 5), 2),
        T.nn.functional.unfold(meta, 2),
    )


@differential
def test_errors(T: Any) -> Any:
    F = T.nn.functional
    x, columns = T.ones(2, 4, 6, 5), T.ones(2, 24, 12)
    return (
        outcome(lambda: F.unfold(x, (3, 2, 1)), "It is expected kernel_size equals to 2, but got size 3"),
        outcome(lambda: F.unfold(T.ones(1, 1, 1, 1, 1), 2), "Expected 3D or 4D (batch mode) tensor"),
        outcome(lambda: F.unfold(x[0, 0], 2), "Dimension out of range"),
        outcome(lambda: F.unfold(x[:, :0], 2), "Expected 3D or 4D (batch mode) tensor"),
        outcome(lambda: F.unfold(x, 9), "calculated shape of the array of sliding blocks as (-2, -3)"),
        outcome(lambda: F.unfold(x, 0), "kernel size should be greater than zero"),
        outcome(lambda: F.unfold(x, 2, stride=0), "stride should be greater than zero"),
        outcome(lambda: F.unfold(x, 2, dilation=0), "dilation should be greater than zero"),
        outcome(lambda: F.unfold(x, 2, padding=-1), "padding should be non-negative"),
        outcome(lambda: F.unfold(x, 2.5), "must be tuple of ints"),
        outcome(lambda: F.fold(columns, (4, 5), (3, 2)), "number of sliding blocks 2 * 4 = 8"),
        outcome(lambda: F.fold(columns[:, :23], (5, 5), (3, 2)), "divisible by the product of kernel_size"),
        outcome(lambda: F.fold(x, (5, 5), (3, 2)), "Expected 2D or 3D (batch mode) tensor"),
        outcome(lambda: F.fold(columns, (5, 5, 5), (3, 2)), "It is expected output_size equals to 2"),
        outcome(lambda: F.fold(columns, (-1, 5), (3, 2)), "number of sliding blocks -3 * 4"),
        outcome(lambda: F.fold(columns, 5, 2, padding=-1), "padding should be non-negative"),
    )
