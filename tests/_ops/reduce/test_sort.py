"""Order: sorting, the k largest, medians, distinct values, searching; and statistics built on it, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau

from ...support.differential import differential, outcome

DTYPES = ["uint8", "int8", "int64", "float16", "bfloat16", "float32"]


def rows(T: Any, dtype: str = "float64") -> Any:
    """No two elements of a row or a column are equal: the indices are determined."""
    return T.tensor([[7, 1, 4, 9], [2, 8, 0, 3], [5, 6, 10, 11]]).to(getattr(T, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@differential
def test_order_in_every_dtype(T: Any, dtype: str) -> Any:
    x = rows(T, dtype)
    return (
        x.sort(), x.sort(0, descending=True), x.T.sort(), x.argsort(1), x.msort(), x[0, 0].sort(),
        x.topk(2), x.topk(2, 0, largest=False), x.T.topk(3, 1), x.kthvalue(3), x.kthvalue(2, 0, True), x[:, :0].sort(1),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@differential
def test_medians_and_modes(T: Any, dtype: str) -> Any:
    x = rows(T, dtype)
    return x.median(), x.median(1), x.nanmedian(0, keepdim=True), x.T.median(0), x.mode(), x[0, 0].median(0)


@differential
def test_stable_sort_of_equal_elements(T: Any) -> Any:
    x = T.tensor([[1, 0, 1, 0, 1], [2, 2, 0, 2, 0]])
    return x.sort(stable=True), x.sort(stable=True, descending=True), x.float().argsort(stable=True, descending=True)


@differential
def test_nan_is_the_largest(T: Any) -> Any:
    x = T.tensor([[3.0, T.nan, -T.inf, 1.0], [0.0, T.inf, 2.0, T.nan]])
    return (
        x.sort(), x.sort(descending=True), x.topk(2), x.kthvalue(4), x.median(1), x.nanmedian(1), x.median(),
        x.quantile(0.5, dim=1), x.nanquantile(0.5, dim=1),
    )  # fmt: skip


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows_picks_the_sorted_head(largest: bool) -> None:
    x = (flambeau.arange(1000) * 7919 % 1009).reshape(2, 500)
    values, indices = x.topk(5, largest=largest)
    assert values.tolist() == x.sort(descending=largest).values[:, :5].tolist()
    assert x.gather(1, indices).tolist() == values.tolist()


@pytest.mark.parametrize(
    "action",
    [
        lambda x: x.sort(0)[0],
        lambda x: x.sort(stable=True)[0],
        lambda x: x.topk(2)[0],
        lambda x: x.kthvalue(2, 0)[0],
        lambda x: x.median(),
        lambda x: x.median(1)[0],
        lambda x: x.nanmedian(0, True)[0],
        lambda x: x.mode(0)[0],
    ],
)
@differential
def test_derivatives(T: Any, action: Any) -> Any:
    x = rows(T).requires_grad_()
    values = action(x)
    (grad,) = T.autograd.grad((values**3).sum(), x, create_graph=True)
    return values, grad.detach(), *T.autograd.grad((grad**2).sum(), x)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@differential
def test_quantiles(T: Any, interpolation: str) -> Any:
    x, q = rows(T), T.tensor([0.1, 0.5, 1.0], dtype=T.float64)
    leaf = rows(T).requires_grad_()
    (grad,) = T.autograd.grad((leaf.quantile(q, dim=0, interpolation=interpolation) ** 2).sum(), leaf)
    return grad, x.quantile(0.3, interpolation=interpolation), x.quantile(q, 1, True, interpolation=interpolation)


@differential
def test_distinct_values(T: Any) -> Any:
    x = T.tensor([[2, 1, 2, 2], [0, 1, 0, 0], [2, 1, 2, 3]])
    line = T.tensor([1, 1, 2, 2, 2, 1, 3])
    return (
        x.unique(), T.unique(x, return_inverse=True, return_counts=True), T.unique(x, dim=1, return_inverse=True),
        line.unique_consecutive(return_inverse=True, return_counts=True), T.unique_consecutive(x, dim=1),
        T.tensor(3.0).unique(), T.tensor(3).unique_consecutive(), line[:0].unique(return_counts=True),
    )  # fmt: skip


@differential
def test_searching(T: Any) -> Any:
    edges, values = T.tensor([1.0, 3.0, 5.0]), T.tensor([[0.0, 1.0, 2.0], [5.0, 6.0, T.nan]])
    lines = T.tensor([[1.0, 2.0], [4.0, 8.0]])
    return (
        T.searchsorted(edges, values), T.searchsorted(edges, values, right=True), T.searchsorted(edges, 3.0),
        T.bucketize(values, edges, out_int32=True), T.bucketize(3.0, edges, right=True),
        T.searchsorted(lines, values), T.searchsorted(edges.flip(0), values, sorter=T.tensor([2, 1, 0])),
    )  # fmt: skip


@differential
def test_histograms(T: Any) -> Any:
    x, weights = T.tensor([0.0, 0.5, 1.0, 1.5, 4.0]), T.tensor([1.0, 2.0, 1.0, 1.0, 0.5])
    return (
        x.histc(4), T.histc(x, 3, 0, 2), T.histogram(x, 4), T.histogram(x, T.tensor([0.0, 1.0, 4.0]), weight=weights),
        T.histogram(x, 2, range=(0.0, 2.0), density=True), T.tensor([1, 3, 3]).bincount(minlength=6),
        T.tensor([1, 0, 1, 2, 1]).bincount(weights), T.zeros(0, dtype=T.int64).bincount(),
    )  # fmt: skip


@differential
def test_covariance(T: Any) -> Any:
    x = rows(T).requires_grad_()
    often, weights = T.tensor([1, 2, 1, 3]), T.tensor([0.5, 1.0, 2.0, 0.25], dtype=T.float64)
    value = x.cov(correction=0, fweights=often, aweights=weights)
    (grad,) = T.autograd.grad((value**2).sum(), x)
    return value.detach(), grad, x.detach().cov(), x.detach()[0].cov(), x.detach().corrcoef()


@differential
def test_errors(T: Any) -> Any:
    x, numbers = rows(T, "float32"), rows(T, "complex64")
    return (
        outcome(lambda: numbers.sort(), "does not support complex dtypes"),
        outcome(lambda: x.topk(5), "selected index k out of range"),
        outcome(lambda: x.kthvalue(0), "selected number k out of range"),
        outcome(lambda: x.bool().median(), "not implemented for"),
        outcome(lambda: x[:, :0].median(1), "Expected reduction dim 1 to have non-zero size"),
        outcome(lambda: x.quantile(T.tensor([1.5])), "q values must be in the range [0, 1]"),
        outcome(lambda: x.quantile(1.5), "q must be in the range [0, 1]"),
        outcome(lambda: x.half().quantile(0.5), "must be either float or double dtype"),
        outcome(lambda: numbers.unique(), "not implemented for"),
        outcome(lambda: x[0].bincount(), "not implemented for"),
        outcome(lambda: T.tensor([-1]).bincount(), "1-d non-negative integral inputs"),
        outcome(lambda: x.histc(0), "bins must be > 0"),
        outcome(lambda: T.sort(x, out=(T.empty(0, dtype=T.float64), T.empty(0, dtype=T.int64))), "Expected out tensor"),
    )


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("largest", [True, False])
@differential
def test_few_of_many(T: Any, dtype: str, largest: bool) -> Any:
    x = (T.arange(600) * 7919 % 1009 % 211).reshape(3, 200).to(getattr(T, dtype))
    if x.is_floating_point():
        x[0, ::3], x[1, ::50], x[2, 5:9] = -T.inf, T.nan, T.inf
    return [each.topk(k, dim, largest)[0] for k in (1, 5, 8, 150) for each, dim in ((x, 1), (x.T.contiguous(), 0))]


@pytest.mark.parametrize("dtype", ["int64", "bfloat16", "float32"])
@differential
def test_modes_of_many(T: Any, dtype: str) -> Any:
    x = (T.arange(600) * 7919 % 1009 % 7).reshape(4, 5, 30).to(getattr(T, dtype))
    return [x.mode(dim, keepdim)[0] for dim in (0, 1, 2) for keepdim in (True, False)]


@differential
def test_distinct_integers_that_lie_close_together(T: Any) -> Any:
    found = {}
    for name in ("uint8", "int16", "int32", "int64", "uint64"):
        limits = T.iinfo(getattr(T, name))
        for start in (limits.min, limits.max - 9):
            numbers = np.array([start + step for step in (3, 9, 3, 0, 0, 0, 3, 9, 5, 5)], name)
            given = T.from_numpy(numbers.reshape(2, 5))
            found[f"{name} from {start}"] = [T.unique(given), T.unique(given, return_inverse=True, return_counts=True)]
    return found


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@differential
def test_order_of_many_integers_that_lie_close_together(T: Any, dtype: str) -> Any:
    kind = getattr(T, dtype)
    info = T.iinfo(kind)
    spread = T.arange(6000, dtype=kind) * 7919 % 65536
    near_both_ends = T.cat([spread[:5000] + info.min, spread[:1000] - 65535 + info.max])
    return [
        each.sort(descending=descending, stable=True)
        for each in (spread - 30000, spread % 50 + info.min, spread + (info.max - 65535), spread * 2, near_both_ends)
        for descending in (False, True)
    ]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"])
@differential
def test_distinct_values_alone(T: Any, dtype: str) -> Any:
    few = T.tensor([3, -1, 0, 3, 2, 0, -1]).to(getattr(T, dtype))
    many = (T.arange(6000) * 7919 % 101 - 20).to(getattr(T, dtype))
    return few.unique(), many.reshape(60, 100).T.unique(), few[:1].unique(), few[0].unique(), few[:0].unique()


def test_distinct_values_are_those_of_unique_with_all_that_it_gives() -> None:
    """One of several NaN is not another, and the first zero stands for both."""
    nan = float("nan")
    for numbers in ([0.0, -0.0, nan, 1.0, nan], [-0.0, 2.0, 0.0, 2.0], [nan], [-0.0, 5.0]):
        x = flambeau.tensor(numbers)
        for each in (x, x.double(), x.half(), x.bfloat16()):
            alone, whole = each.unique().float(), each.unique(return_counts=True)[0].float()
            np.testing.assert_array_equal(alone.numpy().view(np.int32), whole.numpy().view(np.int32))
