"""Attention whose weights are dropped inside one op, beside the ops that it stands for: they drop the same weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

import flambeau as torch
from flambeau._backends.cuda.layers import attention, attention_kernels
from flambeau._backends.cuda.runtime.driver import driver
from flambeau.nn import functional as F
from flambeau.nn.attention import SDPBackend, sdpa_kernel

from .conftest import is_simulated


@pytest.fixture(autouse=True)
def _together() -> Iterator[None]:
    """On the simulated device these kernels alone have blocks whose threads run together."""
    if not is_simulated():
        yield
        return
    simulated: Any = driver()
    compiled = attention_kernels._compiled.__wrapped__

    @functools.cache
    def together(*given: Any) -> Any:
        simulated.together = True
        try:
            return compiled(*given)
        finally:
            simulated.together = False

    with (
        mock.patch.object(attention_kernels, "_compiled", together),
        mock.patch.object(attention_kernels, "serves", lambda width: width <= attention_kernels.MOST_WIDTH),
    ):
        yield
    attention._plans.clear()
    attention._calls.clear()


def _operands(
    heads: int = 2, shared: int = 1, rows: int = 20, keys: int = 24, dtype: Any = torch.bfloat16
) -> list[Any]:
    torch.manual_seed(0)
    shapes = (2, rows, heads, 16), *[(2, keys, heads // shared, 16)] * 2
    given = [torch.randn(shape).to("cuda", dtype).transpose(1, 2).detach() for shape in shapes]
    return [each.requires_grad_() for each in given]


def _ran(call: Callable[..., Any], operands: list[Any]) -> list[Any]:
    torch.cuda.manual_seed(3)
    result = call(*operands)
    weights = torch.linspace(-1, 1, result.numel()).view(result.shape).to("cuda", result.dtype)
    return [result, *torch.autograd.grad(result, operands, weights), torch.rand(3, device="cuda")]


CALLS: dict[str, Callable[..., Any]] = {
    "dropout": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.2),
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, is_causal=True),
    "a mask": lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, (torch.arange(k.size(2), device="cuda") % 3 > 0)[None], dropout_p=0.2
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_same_weights_are_dropped(name: str, dtype: Any) -> None:
    operands = _operands(dtype=dtype)
    found = _ran(CALLS[name], operands)
    assert CALLS[name](*operands).grad_fn.name() == "ScaledDotProductFlashAttentionBackward0"
    with sdpa_kernel(SDPBackend.MATH):
        expected = _ran(CALLS[name], operands)
    for mine, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0.02, atol=0.03)
    assert torch.equal(found[-1], expected[-1]), "as many numbers are drawn"


def test_second_derivatives() -> None:
    def curvature() -> list[Any]:
        operands = [each.detach().float().to(torch.bfloat16).requires_grad_() for each in _operands(rows=4, keys=4)]
        torch.cuda.manual_seed(3)
        first = torch.autograd.grad(CALLS["dropout"](*operands).float().square().sum(), operands, create_graph=True)
        return list(torch.autograd.grad(sum(each.float().square().sum() for each in first), operands))

    found = curvature()
    with sdpa_kernel(SDPBackend.MATH):
        expected = curvature()
    for mine, wanted in zip(found, expected, strict=True):
        scale = float(wanted.float().abs().max())
        torch.testing.assert_close(mine.float() / scale, wanted.float() / scale, rtol=0.05, atol=0.05)


def test_compiled_it_has_the_same_bits() -> None:
    operands = _operands()
    plain = _ran(CALLS["causal"], operands)
    compiled = torch.compile(CALLS["causal"])
    for _ in range(3):
        for mine, wanted in zip(_ran(compiled, operands), plain, strict=True):
            assert torch.equal(mine, wanted)
