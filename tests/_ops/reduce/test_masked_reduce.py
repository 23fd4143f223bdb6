"""The functions of `masked`: as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "norm"]
POSITIONS = ["argmax", "argmin", "median"]
SAME_SHAPE = ["cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize"]


def _function(T: Any, name: str) -> Any:
    f = getattr(T.masked, name)
    if name in ("norm", "normalize"):
        return lambda input, dim=None, **kwargs: f(input, 2.0, dim, **kwargs)
    return f


def _data(T: Any) -> tuple[Any, Any]:
    x = T.tensor([[0.5, -1.0, 2.0, 3.0], [4.0, 0.25, -6.0, 1.5], [1.0, 2.0, 3.0, 4.0]])
    mask = T.tensor([[True, False, True, True], [False, True, True, False], [False, False, False, False]])
    return x, mask


@pytest.mark.parametrize("name", REDUCTIONS)
@differential
def test_reductions(T: Any, name: str) -> Any:
    f, (x, mask) = _function(T, name), _data(T)
    return (
        [f(x, dim, mask=mask) for dim in (None, 0, 1, -1, (0, 1), (), [1])],
        [f(x, dim) for dim in (None, 0, (0, -1))],
        f(x, 1, keepdim=True, mask=mask),
        f(x, (0, 1), keepdim=True, mask=mask),
        f(x, 1, mask=mask[0]),
        f(x, 1, mask=mask.long()),
        f(x, 1, dtype=T.float64, mask=mask),
        f(x.t(), 0, mask=mask.t()),
        f(T.tensor(3.0), 0, mask=T.tensor(False)),
        f(x.half(), 1, mask=mask),
        f(x.to("meta"), 1, mask=mask.to("meta")),
        outcome(lambda: f(x, 2, mask=mask), "Dimension out of range"),
        outcome(lambda: f(x, (0, 0), mask=mask), "appears multiple times in the list of dims"),
        outcome(lambda: f(x, 1, mask=mask.expand(2, 3, 4)), "expected broadcastable mask"),
        outcome(lambda: f(x, 1, mask=T.ones(3, 3).bool()), "must match the existing size (3)"),
    )


def _as_precise(T: Any, name: str, result: Any) -> Any:
    """The logarithm is one of float32 numbers, whatever dtype it is delivered in: it is compared as such."""
    return (result.dtype, result.float()) if name == "logsumexp" else result


@pytest.mark.parametrize("name", REDUCTIONS + POSITIONS + SAME_SHAPE)
@differential
def test_dtypes(T: Any, name: str) -> Any:
    f, (x, _) = _function(T, name), _data(T)
    some = T.tensor([True, False, True, True])
    whole = [x.abs().to(T.int32), x.abs().to(T.uint8), x.bool()]
    if name == "softmin":  # the negative of uint8 wraps around: refused in both, in other words
        whole = whole[:1]
    return (
        [outcome(lambda value=value: f(value, 1, mask=some)) for value in whole],
        [outcome(lambda value=value: f(value, 1)) for value in whole],
        outcome(lambda: _as_precise(T, name, f(x.abs().to(T.int32), 1, mask=some, dtype=T.float64))),
        [] if name == "median" else outcome(lambda: f(x.to(T.complex64), 1, mask=some)),
    )


@pytest.mark.parametrize("name", POSITIONS + SAME_SHAPE)
@differential
def test_along_one_dimension(T: Any, name: str) -> Any:
    f, (x, mask) = _function(T, name), _data(T)
    return (
        [f(x, dim, mask=mask) for dim in (0, 1, -1)],
        [f(x, dim) for dim in (0, 1)],
        f(x, 1, mask=mask[1]),
        f(x.t(), 0, mask=mask.t()),
        f(x, 1, dtype=T.float64, mask=mask),
        f(x, 1, keepdim=True, mask=mask) if name in POSITIONS else (),
        f(T.tensor(3.0), 0, mask=T.tensor(False)),
        outcome(lambda: f(x, 2, mask=mask), "Dimension out of range"),
        outcome(lambda: f(x)),
    )


@differential
def test_options(T: Any) -> Any:
    x, mask = _data(T)
    corrections: list[dict[str, Any]] = [
        {"correction": 0}, {"correction": 2}, {"unbiased": False}, {"unbiased": True},
    ]  # fmt: skip
    return (
        [[T.masked.var(x, 1, mask=mask, **each), T.masked.std(x, 1, **each)] for each in corrections],
        outcome(lambda: T.masked.var(x, 1, True, correction=1), "Only one of unbiased and correction may be given"),
        T.masked.var(x, 1, dtype=T.int64, mask=mask[:1]),
        [T.masked.norm(x, ord, 1, mask=mask) for ord in (0, 1, 3, -1, math.inf, -math.inf)],
        T.masked.norm(x, mask=mask),
        T.masked.normalize(x, 2.0, 1, eps=10.0, mask=mask),
        outcome(lambda: T.masked.mean(x, 1, dtype=T.int64), "Could not infer output dtype"),
        outcome(lambda: T.masked.median(x.int(), 1, mask=mask), "no fully masked out rows"),
    )


@differential
def test_logaddexp(T: Any) -> Any:
    x, mask = _data(T)
    f = T.masked.logaddexp
    return (
        f(x, x + 1),
        f(x, x + 1, input_mask=mask),
        f(x, x + 1, input_mask=mask, other_mask=~mask[0]),
        f(x, T.ones(4), input_mask=mask, dtype=T.float64),
    )


@pytest.mark.parametrize("name", REDUCTIONS + ["median"] + SAME_SHAPE)
@differential
def test_gradients(T: Any, name: str) -> Any:
    f, (x, mask) = _function(T, name), _data(T)
    x = x.double().requires_grad_()
    result = f(x, 1, mask=mask[:2, :].any(0))
    weights = T.arange(result.numel(), dtype=T.float64).reshape(result.shape) + 1
    (first,) = T.autograd.grad((result * weights).sum(), x, create_graph=True)
    second = T.autograd.grad((first * x).sum(), x)[0] if first.requires_grad else None
    return result, first.detach(), second


def test_public_names() -> None:
    of_tensors = {"MaskedTensor", "masked_tensor", "as_masked_tensor", "is_masked_tensor"}
    assert {*REDUCTIONS, *POSITIONS, *SAME_SHAPE, "logaddexp"} | of_tensors == set(flambeau.masked.__all__)
