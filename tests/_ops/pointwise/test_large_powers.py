"""Powers of large tensors by exponents that stand for products and roots: generated kernels with NumPy's bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from tests.support.differential import differential

_SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-30, 3e38, -7.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, 2.0, 3.0])
def test_bits_of_small_tensors(dtype: torch.dtype, exponent: float) -> None:
    """The power of a large tensor is that of its parts, which NumPy computes; transposed tensors too."""
    x = torch.cat((torch.tensor(_SPECIAL, dtype=dtype), torch.linspace(-40, 40, 8991, dtype=dtype))).reshape(90, 100)
    parts = torch.cat([part.pow(exponent) for part in x])
    for large, expected in ((x, parts.reshape(90, 100)), (x.t(), parts.reshape(90, 100).t())):
        found = large.pow(exponent)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        assert (torch.signbit(found) == torch.signbit(expected))[~expected.isnan()].all()


@pytest.mark.parametrize("exponent", [2, 3.0, 0.5, -0.5])
@differential
def test_gradients_of_large_tensors(T: Any, exponent: float) -> Any:
    x = T.linspace(0.5, 4, 6000, dtype=T.float64).reshape(60, 100).requires_grad_()
    (slope,) = T.autograd.grad(x.pow(exponent).sum(), x, create_graph=True)
    return (
        slope,
        T.autograd.grad(slope.sum(), x),
        x.detach().clone().pow_(exponent),
        T.pow(x.detach(), exponent, out=None),
    )
