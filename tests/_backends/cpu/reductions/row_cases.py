"""What the tests of row kernels share: the same call by generated kernels, by NumPy alone and by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import flambeau
from flambeau._backends import tiers

# Relative to the largest number of a result: a few roundings in the dtype of the results.
TOLERANCE = {"float32": 3e-6, "float64": 1e-14, "float16": 3e-3, "bfloat16": 2.5e-2}

Call = Callable[..., Any]


def tensors(T: Any, dtype: str, *arrays: Any) -> list[Any]:
    """Arrays as tensors of a library: floats in `dtype`, requiring gradients, integers as they are."""
    made: list[Any] = []
    for array in arrays:
        if array is None:
            made.append(None)
        elif array.dtype.kind == "f":
            made.append(T.from_numpy(array.copy()).to(getattr(T, dtype)).requires_grad_())
        else:
            made.append(T.from_numpy(array.copy()))
    return made


def results(T: Any, dtype: str, call: Call, arrays: list[Any], grad: Any = None) -> list[Any]:
    """What `call(T, *tensors)` gives, and the gradients of its floating-point operands."""
    given = tensors(T, dtype, *arrays)
    result = call(T, *given)
    leaves = [each for each in given if each is not None and each.requires_grad]
    if grad is None:
        # Sums of these do not cancel, so that their errors can be measured by their size.
        grad = np.sin(np.arange(result.numel(), dtype=np.float64) * 1.7).reshape(tuple(result.shape)) + 0.75
    coming = T.from_numpy(np.array(grad)).to(result.dtype)
    found = T.autograd.grad(result, leaves, coming, allow_unused=True)
    return [None if each is None else each.detach().double().numpy() for each in (result, *found)]


def compare(dtype: str, call: Call, arrays: list[Any], grad: Any = None, tolerance: float = 1.0) -> None:
    """Generated kernels beside NumPy's and PyTorch's; `tolerance` widens what their dtype allows."""
    got = results(flambeau, dtype, call, arrays, grad)
    with tiers.numpy_only():
        by_numpy = results(flambeau, dtype, call, arrays, grad)
    by_torch = results(torch, dtype, call, arrays, grad)
    for ours, reference, theirs in zip(got, by_numpy, by_torch, strict=True):
        close(ours, reference, TOLERANCE[dtype] * tolerance)
        close(ours, theirs, TOLERANCE[dtype] * tolerance)


def close(got: Any, wanted: Any, tolerance: float) -> None:
    """Equal up to `tolerance` times the largest finite number; infinities and NaN in the same places."""
    if wanted is None:
        assert got is None
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(float(finite.max()), 1e-3) if finite.size else 1.0
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)
