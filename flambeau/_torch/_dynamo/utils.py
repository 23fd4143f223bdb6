"""`torch._dynamo.utils`: what programs ask there."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from flambeau._core.tensor import Tensor
from flambeau.compiler._marks import is_compiling
from flambeau.testing import assert_close

__all__ = ["counters", "is_compile_supported", "is_compiling", "same"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""What the compiler did: nothing so far."""


def is_compile_supported(device_type: str) -> bool:
    """Whether code for a device can be compiled: not yet."""
    return False


def same(
    ref: Any, res: Any, fp64_ref: Any = None, cos_similarity: bool = False, tol: float = 1e-4, equal_nan: bool = False,
    exact_dtype: bool = True, **kwargs: Any,
) -> bool:  # fmt: skip
    """Whether two results are alike: containers part by part, tensors within a tolerance, all else by `==`.

    Args:
        ref: what is expected.
        res: what was found.
        fp64_ref: the same in float64: where it is given, `res` may be as far from it as `ref` is, and twice that.
        cos_similarity (bool): whether tensors are alike that have nearly the same direction. Default: `False`.
        tol (float): how far elements may differ, and how far in proportion. Default: `1e-4`.
        equal_nan (bool): whether NaN equals NaN. Default: `False`.
        exact_dtype (bool): whether dtypes have to agree. Default: `True`.
        **kwargs: not used.

    Returns:
        bool: whether they are.
    """
    options = (cos_similarity, tol, equal_nan, exact_dtype)
    if isinstance(ref, (list, tuple)):
        exact = fp64_ref if fp64_ref is not None else [None] * len(ref)
        return (
            isinstance(res, (list, tuple))
            and len(ref) == len(res)
            and all(same(one, two, three, *options) for one, two, three in zip(ref, res, exact, strict=True))
        )
    if isinstance(ref, dict):
        exact = fp64_ref or {}
        return set(ref) == set(res) and all(same(ref[key], res[key], exact.get(key), *options) for key in ref)
    if not isinstance(ref, Tensor):
        return bool(type(ref) is type(res) and ref == res)
    return isinstance(res, Tensor) and _same_tensors(ref, res, fp64_ref, *options)


def _same_tensors(
    ref: Tensor, res: Tensor, exact: Tensor | None, cos_similarity: bool, tol: float, equal_nan: bool, exact_dtype: bool
) -> bool:
    if ref.shape != res.shape or (exact_dtype and ref.dtype != res.dtype):
        return False
    if cos_similarity and ref.numel():
        one, two = ref.flatten().double(), res.flatten().double()
        return float(one @ two) >= 0.99 * float(one.norm() * two.norm())
    try:
        assert_close(res, ref, rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=False, check_stride=False)
    except AssertionError:
        if exact is None or not ref.is_floating_point():
            return False
        errors = [(each.double() - exact.double()).square().mean().sqrt().item() for each in (ref, res)]
        return bool(errors[1] <= 2.0 * errors[0] + tol / 10)
    return True
