"""Largest and smallest elements, and where they are, as in PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome

DTYPES = ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]


def table(T: Any, dtype: str = "float64") -> Any:
    return T.tensor([[3, 1, 3, 0], [2, 2, 0, 1], [0, 5, 4, 5]]).to(getattr(T, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["max", "min"])
@differential
def test_with_and_without_dim(T: Any, name: str, dtype: str) -> Any:
    x = table(T, dtype)
    op = getattr(T, name)
    return op(x), op(x, 0), op(x, dim=-1, keepdim=True), op(x[0, 0], 0), op(x.T, x.T), op(x[:, :0], 0)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
@differential
def test_permuted_layout(T: Any, dim: int, keepdim: bool) -> Any:
    x = (T.arange(24.0) % 5).reshape(2, 3, 4).permute(2, 0, 1)
    return x.max(dim, keepdim), x.amin(dim, keepdim), x.argmax(dim, keepdim), x.aminmax(dim=dim, keepdim=keepdim)


@differential
def test_first_nan_wins(T: Any) -> Any:
    x = T.tensor([[1.0, T.nan, 3.0, T.nan], [T.inf, 2.0, -T.inf, 0.0]])
    both = [f(each, 1) for each in (x, x.bfloat16(), x.half()) for f in (T.max, T.min, T.argmax, T.argmin)]
    return both, x.max(), x.amax((0, 1)), x.aminmax()


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
@pytest.mark.parametrize("dim", [None, 0, 1])
@differential
def test_derivatives_share_or_pick(T: Any, name: str, dim: int | None) -> Any:
    x = table(T).requires_grad_()
    result = getattr(x, name)() if dim is None else getattr(x, name)(dim)
    values = result[0] if isinstance(result, tuple) else result
    (grad,) = T.autograd.grad((values**3).sum(), x, create_graph=True)
    return values, grad.detach(), *T.autograd.grad((grad**2).sum(), x)


@differential
def test_aminmax_derivative(T: Any) -> Any:
    x = table(T).requires_grad_()
    low, high = x.aminmax(dim=1)
    (only_high,) = T.autograd.grad(high.sum(), x, retain_graph=True)
    return low, high, only_high, *T.autograd.grad((low * high).sum(), x)


@differential
def test_named_results(T: Any) -> Any:
    result = table(T).max(1)
    return (
        repr(result),
        result.values,
        result.indices,
        sorted(result._fields) if T is flambeau else ["indices", "values"],
    )


@differential
def test_arguments(T: Any) -> Any:
    x = table(T)
    return x.argmax(), x.argmin(keepdim=True), T.argmax(x, axis=1), x.amax((0, 1), keepdim=True), x.amin([])


@differential
def test_out_has_the_exact_dtype(T: Any) -> Any:
    x = table(T, "float32")
    values, indices = T.empty(0), T.empty(0, dtype=T.int64)
    T.max(x, 1, out=(values, indices))
    wrong = (T.empty(0, dtype=T.float64), indices)
    return (
        values,
        indices,
        outcome(lambda: T.max(x, 1, out=wrong), "Expected out tensor to have dtype float, but got double instead"),
        outcome(lambda: T.amax(x, 1, out=wrong[0]), "Expected the dtype for input and out to match"),
        outcome(lambda: T.argmax(x, 1, out=T.empty(0, dtype=T.int32)), "Expected out tensor to have dtype long int"),
    )


@differential
def test_errors(T: Any) -> Any:
    empty, numbers = T.zeros(2, 0), T.ones(3, dtype=T.complex64)
    return (
        outcome(lambda: empty.max(), "Expected reduction dim to be specified"),
        outcome(lambda: empty.max(1), "Expected reduction dim 1 to have non-zero size"),
        outcome(lambda: empty.amax(), "Expected reduction dim to be specified"),
        outcome(lambda: empty.aminmax(), "cannot compute aminmax over an empty dimension"),
        outcome(lambda: numbers.max(), "not implemented for"),
        outcome(lambda: numbers.max(0), "does not support complex input"),
        outcome(lambda: numbers.amin(), "not implemented for"),
        outcome(lambda: T.ones(3, dtype=T.bool).argmax(), "does not support bool input"),
    )


@differential
def test_aminmax_as_an_operator(T: Any) -> Any:
    """Modes and transforms see it with a dimension, or with none, as PyTorch's operator has it."""
    mode = importlib.import_module(f"{T.__name__}.utils._python_dispatch").TorchDispatchMode
    seen: list[Any] = []

    def watch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "aminmax" in str(func):
            seen.append(sorted((kwargs or {}).items()))
        return func(*args, **(kwargs or {}))

    x = T.arange(24.0).reshape(2, 3, 4).sin()
    with type("Watching", (mode,), {"__torch_dispatch__": watch})():
        found = x.aminmax(), x.aminmax(dim=1), x.aminmax(dim=2, keepdim=True)
    return found, seen, T.func.vmap(lambda each: each.aminmax())(x), T.func.vmap(lambda each: each.aminmax(dim=0))(x)
