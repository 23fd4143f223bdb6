"""Reductions of expanded tensors are those of the same elements written out."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential

SHAPES = [((4, 16, 28, 1), (4, 16, 28, 28)), ((1, 16, 1, 28), (4, 16, 28, 28)), ((1,), (9_000,)), ((64, 1), (64, 300))]


@pytest.mark.parametrize(("shape", "size"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_bits_are_those_of_a_copy(shape: tuple[int, ...], size: tuple[int, ...], dtype: str) -> None:
    flambeau.manual_seed(0)
    expanded = flambeau.randn(shape).to(getattr(flambeau, dtype)).expand(size)
    copied = expanded.contiguous()
    for dim in (None, *range(len(size)), tuple(range(len(size)))):
        for name in ("sum", "mean", "amax"):
            found, expected = [getattr(each, name)(*(() if dim is None else (dim,))) for each in (expanded, copied)]
            assert found.equal(expected), (name, dim)
            assert found.stride() == expected.stride()


@pytest.mark.parametrize(("shape", "size"), SHAPES)
@differential(tolerance=1e-5)
def test_values(T: Any, shape: tuple[int, ...], size: tuple[int, ...]) -> Any:
    T.manual_seed(0)
    x = T.randn(shape, dtype=T.float64).requires_grad_()
    y = x.expand(size)
    total = y.sum() + y.mean(-1).sum() + y.square().sum(0).sum() + y.amax(0).sum() + y.norm()
    total.backward()
    return total, x.grad, y.sum(-1), y.prod(0), y.max(), y.min(0)
