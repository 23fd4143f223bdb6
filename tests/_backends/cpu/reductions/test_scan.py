"""Running sums and products of long dimensions: in float64's sight, in generated code and in NumPy's."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.reductions.scan import running

LONG = 10**6
TIERS = {"generated": nullcontext, "numpy": tiers.numpy_only}


def values(name: str, size: int = LONG) -> Any:
    """Values whose running sums or products stay within the range of float16."""
    noise = np.random.default_rng(0).standard_normal(size)
    if name == "cumprod":
        return 1 + noise * 1e-3
    return 1.1 + noise if name == "logcumsumexp" else 0.05 + noise * 0.1


def beside_float64(name: str, dtype: str, tier: AbstractContextManager[Any]) -> tuple[Any, Any, Any]:
    """Results of Flambeau and of PyTorch in a dtype, and PyTorch's in float64 of the same values, all as float64."""
    theirs = torch.tensor(values(name)).to(getattr(torch, dtype))
    ours = flambeau.tensor(values(name)).to(getattr(flambeau, dtype))
    with tier:
        got = getattr(flambeau, name)(ours, dim=0).double().numpy()
    return (
        got,
        getattr(torch, name)(theirs, dim=0).double().numpy(),
        getattr(torch, name)(theirs.double(), dim=0).numpy(),
    )


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cumulative_trapezoid"])
def test_a_million_elements(name: str, dtype: str, tier: str) -> None:
    got, theirs, exact = beside_float64(name, dtype, TIERS[tier]())
    assert np.abs(got - exact).max() <= 1.01 * np.abs(theirs - exact).max()
    if dtype == "float32" and name != "cumulative_trapezoid":  # rounded once, or nearly so
        assert (np.abs(got - exact) <= np.spacing(np.abs(exact).astype(np.float32))).all()


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        *(("cumsum", tier) for tier in TIERS),
        *(("cumprod", tier) for tier in TIERS),
        ("logcumsumexp", "generated"),  # NumPy has no scan for its gradient: a loop in Python, too long for a test
    ],
)
def test_gradients_of_a_million_elements(name: str, tier: str) -> None:
    x = flambeau.tensor(values(name), dtype=flambeau.float32)
    reference = torch.tensor(x.double().numpy(), requires_grad=True)
    weight = np.cos(np.arange(LONG) * 1e-3).astype(np.float32)
    (wanted,) = torch.autograd.grad(getattr(reference, name)(0), reference, torch.tensor(weight).double())
    x.requires_grad_()
    with TIERS[tier]():
        (got,) = flambeau.autograd.grad(getattr(x, name)(0), x, flambeau.tensor(weight))
    assert np.abs(got.double().numpy() - wanted.numpy()).max() <= 1e-5 * np.abs(wanted.numpy()).max()


def test_gradient_of_a_long_product_with_a_zero() -> None:
    numbers = values("cumprod", 50_000)
    numbers[31_000] = 0
    x = flambeau.tensor(numbers, dtype=flambeau.float32, requires_grad=True)
    reference = torch.tensor(x.detach().double().numpy(), requires_grad=True)
    x.cumprod(0).sum().backward()
    # The zero divides the product in two: what is before it sees only its own part, what is after it nothing.
    (before,) = torch.autograd.grad(reference[:31_000].cumprod(0).sum(), reference)
    at = reference[:31_000].prod() * (1 + reference[31_001:].cumprod(0).sum())
    wanted = before.numpy()
    wanted[31_000] = at.item()
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_products_come_back_from_beyond_the_range(dtype: str, tier: str) -> None:
    large = 3e4 if dtype == "float16" else 1e30
    numbers = [large, large, 1 / large, 1 / large] * 2000
    with TIERS[tier]():
        got = flambeau.tensor(numbers, dtype=getattr(flambeau, dtype)).cumprod(0)
    wanted = torch.tensor(numbers, dtype=getattr(torch, dtype)).cumprod(0)
    assert not np.isfinite(wanted.numpy()[1::4]).any()
    assert np.isfinite(wanted.numpy()[3::4]).all()
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-3)


@pytest.mark.parametrize(("shape", "dim"), [((70, 90), 0), ((70, 90), 1), ((5, 40, 33), 1), ((3, 1, 2000), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_shapes(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    numbers = np.random.default_rng(2).uniform(0.5, 1.5, shape)
    got = getattr(flambeau.tensor(numbers).to(getattr(flambeau, dtype)), name)(dim)
    wanted = getattr(torch.tensor(numbers).to(getattr(torch, dtype)), name)(dim)
    if name == "logcumsumexp":
        tolerance = {"float64": 1e-14, "float32": 3e-7}.get(dtype, 1e-2)
        np.testing.assert_allclose(got.double().numpy(), wanted.double().numpy(), rtol=tolerance, atol=tolerance)
    else:  # the same additions in the same order
        np.testing.assert_array_equal(got.double().numpy(), wanted.double().numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3])
def test_logarithms_of_sums_of_numbers_far_apart(dtype: Any, columns: int) -> None:
    generator = np.random.default_rng(4)
    lines = [
        generator.uniform(-1e4, 1e4, 5000),
        np.linspace(-900, 900, 5000),
        np.repeat([-np.inf, -3.0, 700.0, -np.inf], 1250),
        np.where(np.arange(5000) == 4321, np.inf, 0.1),
        np.where(np.arange(5000) == 777, np.nan, generator.standard_normal(5000)),
        np.full(5000, -1e-3) - np.arange(5000) * 20.0,
    ]
    for line in lines:
        array = np.repeat(line.astype(dtype)[:, None], columns, 1)
        wanted = np.logaddexp.accumulate(array.astype(np.longdouble), 0).astype(np.float64)
        got = running("logaddexp", array, 0)
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))
        np.testing.assert_array_equal(got[~np.isfinite(got)], wanted[~np.isfinite(wanted)])
        with np.errstate(invalid="ignore"):
            error, theirs = (np.abs(each - wanted) for each in (got, torch.tensor(array).logcumsumexp(0).numpy()))
        finite = np.isfinite(wanted)
        unit = np.finfo(dtype).eps * np.abs(wanted).clip(1)
        assert (error <= np.maximum(4 * unit, 1.5 * theirs))[finite].all()


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize(("shape", "dim"), [((5000,), 0), ((3, 2000), 1), ((2000, 3), 0), ((20, 30, 20), 1)])
def test_integers(name: str, shape: tuple[int, ...], dim: int) -> None:
    """Exact, and around the end of their range as NumPy and PyTorch go."""
    numbers = np.random.default_rng(1).integers(-(2**62), 2**62, shape)
    exact = getattr(np, name)(numbers, dim)
    assert running({"cumsum": "add", "cumprod": "multiply"}[name], numbers, dim).tolist() == exact.tolist()
    assert getattr(flambeau.tensor(numbers), name)(dim).tolist() == exact.tolist()
    small = flambeau.tensor((numbers % 7).astype(np.int8))
    assert getattr(small, name)(dim).tolist() == getattr(np, name)(numbers % 7, dim).tolist()
