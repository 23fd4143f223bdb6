"""Kernels of elementwise ops: changes of views have the bits of the forms that make a tensor, plain and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau._core.backend import LARGE

Cut = Callable[[Any], Any]

UNARY = [
    "acos", "asin", "asinh", "atan", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "i0",
    "lgamma", "log", "log10", "log1p", "log2", "logit", "reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt",
    "tan", "tanh",
]  # fmt: skip
BINARY = ["add", "atan2", "copysign", "div", "hypot", "mul", "pow", "remainder", "sub", "xlogy"]
VIEWS: dict[str, Cut] = {
    "a column": lambda x: x[:, 1],
    "some columns": lambda x: x[:, 1:],
    "transposed": lambda x: x.t(),
    "every other row": lambda x: x[::2],
    "transposed part": lambda x: x[:, :2].t(),
}


def _same_bits(one: Any, other: Any) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


@pytest.mark.parametrize("rows", [2, 30, 2 * LARGE])
@pytest.mark.parametrize("view", VIEWS)
def test_changes_of_views_have_the_bits_of_new_results(view: str, rows: int) -> None:
    cut = VIEWS[view]
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(rows, 3, dtype=dtype) * 0.9 + 0.05
        other = cut(torch.rand(rows, 3, dtype=dtype) + 0.5)
        rest = x.clone()
        cut(rest).zero_()
        for name in UNARY:
            target = x.clone()
            assert _same_bits(getattr(cut(target), f"{name}_")(), getattr(cut(x), name)()), name
            assert _same_bits(getattr(cut(x), name)(), getattr(cut(x).contiguous(), name)()), name
            cut(target).zero_()
            assert _same_bits(target, rest), f"{name}: what is beside the view has changed"
        for name in BINARY:
            numbers = () if name in ("atan2", "hypot") else (1.5,)
            for operand in (other, other.contiguous(), cut(x), *numbers):
                target = x.clone()
                assert _same_bits(getattr(cut(target), f"{name}_")(operand), getattr(cut(x), name)(operand)), name


def test_operands_that_are_the_target_or_share_its_memory() -> None:
    x = torch.rand(2 * LARGE, 3)
    target = x.clone()
    view = target[:, 1]
    view.mul_(view)
    assert _same_bits(view, x[:, 1] * x[:, 1])
    target = x.clone()
    target[:, 0].add_(target[:, 1])
    assert _same_bits(target[:, 0], x[:, 0] + x[:, 1])
    target = x.clone()
    target[:, 1:].mul_(torch.tensor([2.0, 3.0]))
    assert _same_bits(target, x * torch.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("rows", [3, 2 * LARGE])
@pytest.mark.parametrize("name", ["erf_", "exp_", "sin_", "tanh_", "log1p_", "sigmoid_"])
def test_compiled_changes_of_views_have_the_bits_of_plain_ones(name: str, rows: int) -> None:
    def function(x: Any) -> Any:
        whole = x * 1.5
        view = whole[:, 1]
        half = view.div(2)
        getattr(view, name)()
        return whole, view, half

    torch.manual_seed(0)
    compiled = torch.compile(function)
    for _ in range(5):
        x = torch.rand(rows, 3, dtype=torch.float64)
        for one, other in zip(compiled(x), function(x), strict=True):
            assert _same_bits(one, other)
