"""`logsumexp` in one pass over the threads, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends.tiers import generated, numpy_only

pytestmark = pytest.mark.skipif(generated("rows") is None, reason="no code generator")

CASES = [
    ((300, 257), (1,)),
    ((300, 257), (0,)),
    ((300, 257), (0, 1)),
    ((40, 5), (1,)),
    ((3, 70, 130), (1,)),
    ((3, 70, 130), (0, 2)),
    ((7, 333, 3), (1, 2)),
    ((2, 9000), (-1,)),
    ((5,), (0,)),
    ((1, 1), (0,)),
    ((8, 64, 8), (0,)),
]
CLOSE = {"float32": (1e-6, 1e-6), "float64": (1e-13, 1e-13), "bfloat16": (8e-3, 8e-3), "float16": (1e-3, 1e-3)}
"""How far results may be apart: relative to them, and where they are near zero."""


@pytest.fixture(autouse=True)
def _usual_number_of_threads() -> Iterator[None]:
    number = flambeau.get_num_threads()
    yield
    flambeau.set_num_threads(number)


def _filled(numbers: Any, what: str) -> Any:
    flat = numbers.reshape(-1)
    if what == "large":
        flat[::31] *= 1e4
    elif what == "infinite":
        flat[::97], flat[1::53] = np.inf, -np.inf
    elif what == "nan":
        flat[::91] = np.nan
    elif what == "nothing":
        flat[:] = -np.inf
    return numbers


@pytest.mark.parametrize("what", ["usual", "large", "infinite", "nan", "nothing"])
@pytest.mark.parametrize("dtype", CLOSE)
def test_values_and_gradients(dtype: str, what: str) -> None:
    relative, absolute = CLOSE[dtype]
    for shape, dims in CASES:
        numbers = _filled(np.random.default_rng(0).standard_normal(shape) * 5, what)
        ours, theirs = (
            module.tensor(numbers).to(getattr(module, dtype)).requires_grad_() for module in (flambeau, torch)
        )
        for keepdim in (False, True):
            wanted, found = theirs.logsumexp(dims, keepdim), []
            for threads in (1, 2, 3, 7):
                flambeau.set_num_threads(threads)
                got = ours.logsumexp(dims, keepdim)
                assert got.stride() == wanted.stride()
                found.append(got.detach().double().numpy())
                np.testing.assert_array_equal(found[-1], found[0])
            np.testing.assert_allclose(found[0], wanted.detach().double().numpy(), relative, absolute)
            slopes = [each.sum() for each in (got, wanted)]
            gradients = [
                module.autograd.grad(slope, each)[0].double().numpy()
                for module, slope, each in zip((flambeau, torch), slopes, (ours, theirs), strict=True)
            ]
            np.testing.assert_allclose(*gradients, 20 * relative, absolute)


def test_a_transpose_and_numpy_alone() -> None:
    x = flambeau.from_numpy(np.random.default_rng(0).standard_normal((90, 70)).astype(np.float32))
    with numpy_only():
        wanted = x.t().logsumexp(1).numpy()
    np.testing.assert_allclose(x.t().logsumexp(1).numpy(), wanted, 1e-6)
