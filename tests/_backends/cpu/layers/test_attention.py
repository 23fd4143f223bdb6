"""Attention in blocks beside PyTorch's and beside the kernel that holds all scores."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends import tiers

CASES: list[tuple[tuple[int, int, int, int], int, dict[str, Any], str]] = [
    ((2, 3, 40, 16), 40, {}, ""),
    ((2, 3, 70, 24), 70, {"is_causal": True}, ""),
    ((1, 2, 33, 64), 300, {}, ""),
    ((2, 3, 50, 20), 150, {}, "number"),
    ((1, 1, 1, 8), 5, {}, ""),
    ((2, 2, 150, 32), 150, {"is_causal": True, "scale": 0.3}, ""),
    ((1, 2, 5, 17), 300, {"is_causal": True}, ""),
    ((1, 2, 300, 5), 7, {"is_causal": True}, ""),
    ((2, 2, 40, 16), 40, {}, "truth"),
    ((2, 2, 40, 16), 40, {"scale": -1.0}, "row"),
    ((2, 2, 4, 37), 70, {}, "truth"),
    ((1, 2, 3, 16), 2, {"is_causal": True}, ""),
    ((2, 2, 1, 20), 33, {"scale": -1.0}, "row"),
]


def run(module: Any, case: Any, dtype: str) -> list[Any]:
    (batch, heads, rows, width), keys, options, mask = case
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((batch, length, heads, width)) for length in (rows, keys, keys)]
    inputs = [module.tensor(each).to(getattr(module, dtype)).requires_grad_() for each in arrays]
    given = None
    if mask == "number":
        given = module.tensor(rng.standard_normal((rows, keys))).to(getattr(module, dtype))
    elif mask == "row":
        given = module.tensor(rng.standard_normal((1, 1, 1, keys))).to(getattr(module, dtype))
    elif mask == "truth":
        seen = rng.random((batch, 1, rows, keys)) > 0.5
        seen[0, 0, 3] = False  # a query that sees nothing
        given = module.tensor(seen)
    query, key, value = (each.transpose(1, 2) for each in inputs)
    result = module.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=given, **options)
    weight = module.tensor(np.linspace(-1, 1, result.numel()).reshape(result.shape))
    (result.double() * weight).sum().backward()
    return [result.stride(), result.detach().double().numpy(), *[each.grad.double().numpy() for each in inputs]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 2e-6), ("bfloat16", 1e-2)])
def test_results_and_gradients(case: Any, dtype: str, tolerance: float) -> None:
    got, wanted = run(flambeau, case, dtype), run(torch, case, dtype)
    assert got[0] == wanted[0]
    for one, two in zip(got[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * max(1e-3, np.abs(two).max()))
    with tiers.numpy_only():
        plain = run(flambeau, case, dtype)
    for one, two in zip(got[1:], plain[1:], strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * max(1e-3, np.abs(two).max()))


def test_memory_is_linear_in_the_length() -> None:
    query = flambeau.randn(1, 1, 3000, 8)
    flambeau.nn.functional.scaled_dot_product_attention(query, query, query)
    tracemalloc.start()
    try:
        flambeau.nn.functional.scaled_dot_product_attention(query, query, query)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * query.numel() * 4  # all scores would be 36 MB


def test_extreme_scores() -> None:
    query = flambeau.full((1, 1, 4, 8), 1e4)
    key = flambeau.linspace(-1e4, 1e4, 200 * 8).reshape(1, 1, 200, 8)
    value = flambeau.arange(200 * 8.0).reshape(1, 1, 200, 8)
    got = flambeau.nn.functional.scaled_dot_product_attention(query, key, value)
    np.testing.assert_allclose(got.numpy()[0, 0, 0], value.numpy()[0, 0, -1])
    value[0, 0, 3, 2] = float("nan")
    got = flambeau.nn.functional.scaled_dot_product_attention(query, key, value).numpy()
    assert np.isnan(got[..., 2]).all()
    assert np.isfinite(got[..., 3]).all()
