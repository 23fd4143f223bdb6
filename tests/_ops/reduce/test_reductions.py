"""Sums, means, products, variances, truth: values, layouts, derivatives, errors as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome, warned

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
DIMS: list[Any] = [None, 0, -1, (0, 2), (), [1]]
NODES = ["sum", "mean", "nansum", "var", "std"]


def cube(T: Any, dtype: str = "float64", permuted: bool = False, grad: bool = False) -> Any:
    values = T.arange(24).reshape(2, 3, 4) % 7 - 2
    tensor = values.to(getattr(T, dtype))
    if permuted:
        tensor = tensor.permute(2, 0, 1)
    return tensor.requires_grad_() if grad else tensor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "count_nonzero"])
@differential
def test_every_dtype(T: Any, name: str, dtype: str) -> Any:
    x = cube(T, dtype)
    return getattr(x, name)(), getattr(x, name)(dim=1), getattr(x[:0], name)(), getattr(x[0, 0, 0], name)(dim=-1)


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "var", "std", "all", "any"])
@differential
def test_dims_and_layout(T: Any, name: str, dim: Any, keepdim: bool, permuted: bool) -> Any:
    return getattr(cube(T, permuted=permuted), name)(dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", [None, 0, (0, 2)])
@pytest.mark.parametrize("name", NODES)
@differential
def test_derivatives(T: Any, name: str, dim: Any) -> Any:
    x = cube(T, grad=True)
    result = getattr(x, name)() if dim is None else getattr(x, name)(dim=dim)
    (grad,) = T.autograd.grad((result * result).sum(), x, create_graph=True)
    (second,) = T.autograd.grad((grad**3).sum(), x)
    return result, grad.detach(), second


@pytest.mark.parametrize("zeros", [0, 1, 2])
@differential
def test_product_derivatives_with_zeros(T: Any, zeros: int) -> Any:
    x = T.tensor([[2.0, 3.0, 0.5], [4.0, 5.0, -1.0]], dtype=T.float64)
    x[0, :zeros] = 0
    x.requires_grad_()
    results = []
    for product in (x.prod(), x.prod(1).sum(), x.prod(0, keepdim=True).sum()):
        (grad,) = T.autograd.grad(product, x, create_graph=True)
        results += [product.detach(), grad.detach(), *T.autograd.grad((grad * grad).sum(), x)]
    return results


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@differential
def test_pairs_have_one_node(T: Any, name: str) -> Any:
    x = cube(T, grad=True)
    spread, mean = getattr(T, name)(x, dim=1, correction=0)
    (both,) = T.autograd.grad((spread * mean).sum(), x, retain_graph=True)
    (only_mean,) = T.autograd.grad(mean.sum(), x)
    return spread, mean, both, only_mean, spread.grad_fn is mean.grad_fn


@differential
def test_nan_and_infinity(T: Any) -> Any:
    x = T.tensor([[T.nan, 1.0, 2.0], [T.inf, -T.inf, 3.0], [T.nan, T.nan, T.nan]])
    return x.sum(1), x.nansum(1), x.nanmean(1), x.mean(1), x.prod(1), x.all(1), x.var(1), x.count_nonzero(1)


@differential(tolerance=0.0)
def test_nan_left_out_of_all(T: Any) -> Any:
    rows = [
        [T.nan, 1.0, 2.0],
        [1.0, -2.5, 3.0],
        [-T.inf, 1.0, T.nan],
        [T.inf, -T.inf, 3.0],
        [T.nan, T.nan, T.nan],
        [-0.0],
    ]
    return [T.tensor(row, dtype=dtype).nansum() for row in rows for dtype in (T.float32, T.float64, T.float16)]


@differential
def test_dtype_argument_and_numpy_names(T: Any) -> Any:
    x = cube(T, "int32")
    return x.sum(dtype=T.float32), x.mean(dtype=T.float64), x.prod(0, dtype=T.float32), T.sum(x, axis=1, keepdims=True)


@differential
def test_out(T: Any) -> Any:
    x, out = cube(T, "float32"), T.empty(0)
    returned = T.sum(x, 0, out=out)
    return out, returned is out, T.mean(x, (0, 1), out=T.empty(4))


@differential
def test_degrees_of_freedom(T: Any) -> Any:
    x = T.tensor([1.0, 2.0])
    few = warned(lambda: x.var(correction=2), "degrees of freedom is <= 0")
    return few, x.var(unbiased=False), x.std(False), x.var(0, True, True), warned(lambda: x[:1].std())


@differential
def test_errors(T: Any) -> Any:
    x, whole = cube(T), cube(T, "int64")
    return (
        outcome(lambda: x.sum(3), "Dimension out of range"),
        outcome(lambda: x.sum((0, 0)), "appears multiple times in the list of dims"),
        outcome(lambda: whole.mean(), "could not infer output dtype"),
        outcome(lambda: x.mean(dtype=T.int64), "Optional dtype must be either"),
        outcome(lambda: whole.var(), "only support floating point and complex dtypes"),
        outcome(lambda: cube(T, "complex64").nansum(), "does not support complex inputs"),
        outcome(lambda: whole.nanmean(), "expected input to have floating point or complex dtype"),
    )


def test_a_long_sum_of_rows_keeps_its_precision() -> None:
    rows = flambeau.full((200_000, 2), 0.1)  # added up row by row, in float32, it would be wrong by 2e-3
    assert rows.sum(0).tolist() == pytest.approx([20_000.0] * 2, rel=1e-5)
    assert rows.mean(0, keepdim=True).tolist()[0] == pytest.approx([0.1] * 2, rel=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@differential
def test_many_integers(T: Any, dtype: str) -> Any:
    x = (T.arange(18000) * 7919 % 1009 % 251).reshape(60, 3, 100).to(getattr(T, dtype))
    return [
        each
        for dim in ((0,), (1,), (2,), (0, 2), (0, 1, 2))
        for each in (x.sum(dim), x.amax(dim), x.amin(dim, keepdim=True), x.permute(2, 0, 1).sum(dim))
    ]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@differential(tolerance=1e-2)
def test_many_numbers_without_nan(T: Any, dtype: str) -> Any:
    x = (T.arange(6000) % 13 / 8).reshape(60, 100).to(getattr(T, dtype))
    norms = [T.linalg.vector_norm(x, dim=dim, keepdim=True) for dim in (0, 1, (0, 1))]
    x[::7, ::3] = T.nan
    return [x.nansum(), x.nansum(0), x.nansum(1, keepdim=True), x.nansum((0, 1)), x.T.nansum(1), norms]


@pytest.mark.parametrize("dim", [-1, 1, (1, 3), 0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16"])
@differential
def test_sums_over_dimensions_of_size_one(T: Any, dim: Any, dtype: str) -> Any:
    """Each sum is of one element: -0.0 becomes 0.0 all the same."""
    x = (T.arange(6000) % 11 - 5).reshape(60, 1, 100, 1).to(getattr(T, dtype))
    if x.is_floating_point():
        x = x * -1.0
        x[0, 0, 0] = float("nan")
        x[1, 0, 0] = float("-inf")
    found = [x.sum(dim), x.sum(dim, keepdim=True), x.mT.sum(dim), x.transpose(0, 2).sum(dim)]
    signs = [T.signbit(each) for each in found] if x.is_floating_point() else []
    return found, signs, [each.stride() for each in found]
