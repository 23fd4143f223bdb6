"""Running sums, products, extremes, differences and integrals, as in PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ...support.differential import differential, outcome


def rows(T: Any, dtype: str = "float64") -> Any:
    return T.tensor([[2, 1, -3, 1], [3, 3, 0, -2], [1, 4, 2, 4]]).to(getattr(T, dtype))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@differential
def test_sums_and_products(T: Any, name: str, dtype: str) -> Any:
    x = rows(T, dtype)
    op = getattr(T, name)
    own = outcome(lambda: op(x, 1, dtype=getattr(T, dtype)))
    return op(x, 0), op(x, -1), op(x.T, 1), op(x[0, 0], 0), op(x[:0], 0), own


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@differential
def test_running_extremes(T: Any, name: str, dtype: str) -> Any:
    x = rows(T, dtype)
    op = getattr(T, name)
    return op(x, 0), op(x, 1), op(x.T, 1), op(x[0, 0], 0), op(x[:0], 0)


@differential
def test_running_extremes_keep_nan(T: Any) -> Any:
    x = T.tensor([1.0, T.nan, 3.0, T.nan, T.inf])
    return x.cummax(0), x.cummin(0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("dim", [0, 1])
@differential
def test_derivatives(T: Any, name: str, dim: int) -> Any:
    x = rows(T).requires_grad_()
    result = getattr(x, name)(dim)
    values = result[0] if isinstance(result, tuple) else result
    weight = T.arange(12.0, dtype=T.float64).reshape(3, 4) - 5
    (grad,) = T.autograd.grad((values**2 * weight).sum(), x, create_graph=True)
    return values, grad.detach(), *T.autograd.grad((grad**2).sum(), x)


@differential
def test_complex_derivatives(T: Any) -> Any:
    x = T.tensor([1 + 2j, 0.5 - 1j, -2j, 0], dtype=T.complex128, requires_grad=True)
    results = []
    for values in (x.cumprod(0), x.cumsum(0), x.logcumsumexp(0)):
        results += [values.detach(), *T.autograd.grad(values.abs().sum(), x)]
    return results


@differential
def test_logcumsumexp_does_not_overflow(T: Any) -> Any:
    x = T.tensor([[1000.0, 1001.0, -T.inf], [-T.inf, 5.0, T.inf], [T.nan, 1.0, 2.0]])
    large = T.tensor([1e4 + 1j, 1e4, 1.0, complex(-T.inf, 0)])
    return x.logcumsumexp(1), x.logcumsumexp(0), large.logcumsumexp(0)


@differential
def test_in_place_and_out(T: Any) -> Any:
    x, out = rows(T, "float32"), T.empty(0)
    x.cumsum_(1)
    T.cumprod(x, 0, out=out)
    return x, out, outcome(lambda: T.cummax(x, 0, out=(T.empty(0, dtype=T.float64), T.empty(0, dtype=T.int64))))


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float64"])
@differential
def test_diff(T: Any, n: int, dtype: str) -> Any:
    x = rows(T, dtype)
    return x.diff(n), x.diff(n, dim=0, prepend=x[:1]), T.diff(x, n, append=x[:, :2])


@differential
def test_trapezoid(T: Any) -> Any:
    y = rows(T)
    x = T.tensor([0.0, 1.0, 1.5, 4.0], dtype=T.float64)
    results = [T.trapezoid(y), T.trapezoid(y, dx=0.5, dim=0), T.trapezoid(y, x), T.trapezoid(y[:, :0]), T.trapz(y, x)]
    return results, T.cumulative_trapezoid(y), T.cumulative_trapezoid(y, x), T.cumulative_trapezoid(y.T, x, dim=0)


@differential
def test_errors(T: Any) -> Any:
    x = rows(T)
    return (
        outcome(lambda: x.cumsum(2), "Dimension out of range"),
        outcome(lambda: rows(T, "complex64").cummax(0), "not implemented for"),
        outcome(lambda: rows(T, "int64").logcumsumexp(0), "not implemented for"),
        outcome(lambda: T.tensor(1.0).diff(), "at least one-dimensional"),
        outcome(lambda: x.diff(-1), "order must be non-negative"),
        outcome(lambda: x.diff(prepend=x[0]), "same dimension as input"),
        outcome(lambda: x.diff(prepend=x[:2]), "match that of input except along the"),
        outcome(lambda: T.trapezoid(x, T.ones(3)), "There must be one `x` value for each sample point"),
        outcome(lambda: T.trapezoid(rows(T, "bool")), "bool is not supported"),
    )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@differential
def test_running_extremes_of_many(T: Any, name: str, dtype: str) -> Any:
    x = (T.arange(6000) * 7919 % 1009 % 101).reshape(20, 30, 10).to(getattr(T, dtype))
    if x.is_floating_point():
        x[3, 4:9, 2], x[5, 1], x[7, 2:] = T.nan, T.inf, -T.inf
    op = getattr(T, name)
    return op(x, 0), op(x, 1), op(x, 2), op(x.reshape(-1), 0), op(x.permute(2, 0, 1), 1)


_ODD = (2.0, 0.0, float("nan"), float("inf"), -3.0)


@pytest.mark.parametrize("first", _ODD)
@differential
def test_gradients_of_products_where_zeros_stand_beside_nan_and_infinity(T: Any, first: float) -> Any:
    found = []
    w = T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
    for rest in itertools.product(_ODD, repeat=2):
        for function in (lambda x: x.prod(), lambda x: x.prod(0), lambda x: (x.cumprod(0) * w).sum()):
            x = T.tensor((first, *rest), dtype=T.float64, requires_grad=True)
            found += T.autograd.grad(function(x), x)
    return found


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("dim", [0, 1])
@differential
def test_gradients_of_running_products_with_several_zeros(T: Any, dim: int, dtype: str) -> Any:
    x = T.tensor([[0, 2, 1, 3], [3, 0, 0, -2], [0, 4, 2, 4], [1, 5, 0, 0]], dtype=getattr(T, dtype)).requires_grad_()
    w = T.arange(16.0).reshape(4, 4)
    return T.autograd.grad((x.cumprod(dim) * w).real.sum(), x)


@differential
def test_second_derivatives_of_running_products_with_zeros(T: Any) -> Any:
    x = T.tensor([2.0, 0.0, 3.0, 0.0, 4.0], dtype=T.float64, requires_grad=True)
    (slope,) = T.autograd.grad((x.cumprod(0) * T.arange(5.0)).sum(), x, create_graph=True)
    return slope.detach(), *T.autograd.grad((slope * T.arange(1.0, 6.0)).sum(), x)
