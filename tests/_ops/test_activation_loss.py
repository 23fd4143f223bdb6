"""Activations, softmax and basic losses against PyTorch: values, node names, first and second derivatives."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import differential, outcome

POINTS = [-7.0, -3.0, -1.2, -0.5, 0.0, 0.4, 0.5, 1.0, 2.9, 3.0, 6.0, 25.0]


def _derivatives(T: Any, make: Any, x: Any) -> Any:
    x.requires_grad_()
    result = make(x)
    weights = T.linspace(0.5, 1.5, result.numel(), dtype=T.float64).reshape(result.shape)
    (first,) = T.autograd.grad(result, x, weights, create_graph=True)
    # Where the second derivative is zero everywhere, it is a matter of taste whether the first is connected at all.
    second = T.autograd.grad((first * first.detach()).sum(), x, allow_unused=True)[0] if first.requires_grad else None
    return result, first.detach(), 0.0 if second is None else second.abs().sum().item()


@pytest.mark.parametrize(
    "expression",
    [
        "relu(x)",
        "relu6(x)",
        "elu(x, 0.7)",
        "selu(x)",
        "celu(x, 0.5)",
        "gelu(x)",
        "gelu(x, approximate='tanh')",
        "silu(x)",
        "mish(x)",
        "softplus(x)",
        "softplus(x, 2, 5)",
        "softsign(x)",
        "hardtanh(x)",
        "hardswish(x)",
        "hardshrink(x)",
        "softshrink(x)",
        "tanhshrink(x)",
        "threshold(x, 0.4, -2)",
        "leaky_relu(x, 0.2)",
        "rrelu(x)",
        "glu(x)",
        "logsigmoid(x)",
        "softmax(x, 0)",
        "log_softmax(x, 0)",
        "softmin(x, 0)",
    ],
)
@differential(tolerance=1e-5)
def test_activations(T: Any, expression: str) -> Any:
    x = T.tensor(POINTS, dtype=T.float64)
    return _derivatives(T, lambda x: eval(f"F.{expression}", {"F": T.nn.functional, "x": x}), x)


@differential
def test_hardsigmoid(T: Any) -> Any:
    x = T.tensor(POINTS, dtype=T.float64, requires_grad=True)
    result = T.nn.functional.hardsigmoid(x)
    return result, T.autograd.grad(result.sum(), x)


@pytest.mark.parametrize("name", ["relu", "elu", "leaky_relu", "selu", "hardtanh", "silu", "mish", "hardswish", "celu"])
@differential
def test_in_place_activations(T: Any, name: str) -> Any:
    x = T.tensor([-1.0, 0.5, 2.0])
    result = getattr(T.nn.functional, name)(x, inplace=True)
    return x, result is x


@differential
def test_prelu(T: Any) -> Any:
    x = T.linspace(-2, 2, 12).reshape(2, 3, 2).requires_grad_()
    weight = T.tensor([0.1, 0.2, 0.3], requires_grad=True)
    result = T.nn.functional.prelu(x, weight)
    return result, *T.autograd.grad(result.sum(), (x, weight))


@differential
def test_softmax_of_every_dimension_and_dtype(T: Any) -> Any:
    x = T.linspace(-3, 3, 24).reshape(2, 3, 4)
    return (
        [x.softmax(dim) for dim in (0, 1, -1)],
        x.log_softmax(1),
        x.softmax(0, dtype=T.float64),
        x.half().softmax(-1),
        x.logsumexp((0, 2)),
        x.logsumexp(1, keepdim=True),
        T.tensor(2.0).softmax(0),
        T.ones(2, 0).softmax(1),
        T.tensor([float("-inf"), 0.0]).softmax(0),
        T.tensor([float("-inf")] * 2).logsumexp(0),
        T.tensor([1, 2]).logsumexp(0),
        outcome(lambda: T.tensor([1, 2]).softmax(0), "not implemented for 'Long'"),
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "expression",
    [
        "mse_loss(x, y, reduction=r)",
        "l1_loss(x, y, reduction=r)",
        "smooth_l1_loss(x, y, reduction=r, beta=0.5)",
        "huber_loss(x, y, reduction=r, delta=0.5)",
        "binary_cross_entropy(x.sigmoid(), y, reduction=r)",
        "binary_cross_entropy(x.sigmoid(), y, weight=w, reduction=r)",
        "binary_cross_entropy_with_logits(x, y, reduction=r)",
        "binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=w, reduction=r)",
        "kl_div(x, y, reduction=r)",
        "kl_div(x, y, reduction=r, log_target=True)",
        "cross_entropy(x, c, reduction=r)",
        "cross_entropy(x, c, weight=w, ignore_index=1, reduction=r)",
        "cross_entropy(x, y, weight=w, reduction=r)",
        "cross_entropy(x, c, weight=w, label_smoothing=0.2, reduction=r)",
        "cross_entropy(x, y, label_smoothing=0.2, reduction=r)",
        "nll_loss(x, c, reduction=r)",
        "nll_loss(x.reshape(1, 4, 3), T.tensor([[0, 3, 1]]), reduction=r)",
        "nll_loss(x[0], c[0], weight=w, reduction=r)",
    ],
)
@differential(tolerance=1e-5)
def test_losses(T: Any, expression: str, reduction: str) -> Any:
    scope = {
        "F": T.nn.functional,
        "T": T,
        "r": reduction,
        "c": T.tensor([0, 2, 1, 1]),
        "w": T.tensor([0.5, 1.5, 2.0], dtype=T.float64),
        "y": T.linspace(0.1, 0.9, 12, dtype=T.float64).reshape(4, 3),
    }
    x = T.linspace(-2, 2, 12, dtype=T.float64).reshape(4, 3)
    return _derivatives(T, lambda x: eval(f"F.{expression}", {**scope, "x": x}), x)


@differential
def test_errors_of_losses(T: Any) -> Any:
    F, x = T.nn.functional, T.zeros(2, 3)
    return (
        outcome(lambda: F.cross_entropy(x, T.tensor([0, 3])), "out of bounds"),
        outcome(lambda: F.nll_loss(x, T.tensor([0])), "batch_size"),
        outcome(lambda: F.binary_cross_entropy(x + 2, x), "all elements of input should be between 0 and 1"),
        outcome(lambda: F.mse_loss(x, x, reduction="all"), "is not a valid value for reduction"),
        outcome(lambda: F.one_hot(T.tensor([-1])), "Class values must be non-negative"),
        outcome(lambda: F.dropout(x, 2.0), "dropout probability has to be between 0 and 1"),
        outcome(lambda: F.glu(x), "Halving dimension must be even"),
    )


@differential
def test_one_hot(T: Any) -> Any:
    F = T.nn.functional
    return F.one_hot(T.tensor([[0, 2], [1, 1]])), F.one_hot(T.tensor(1), 4), F.one_hot(T.empty(0, dtype=T.int64), 3)


@differential
def test_random_activations_draw_the_same_numbers(T: Any) -> Any:
    F = T.nn.functional
    x = T.linspace(-2, 2, 20, requires_grad=True)
    dropped = F.dropout(x, 0.3)
    return dropped, T.autograd.grad(dropped.sum(), x), F.dropout(x, 0.3, training=False) is x, F.rrelu(x, training=True)


@differential
def test_softmax_of_nothing_has_any_dtype(T: Any) -> Any:
    empty = [T.zeros(*shape, dtype=dtype) for shape in ((0,), (3, 0), (0, 3)) for dtype in (T.int64, T.bool, T.cfloat)]
    results = [op(x, -1) for x in empty for op in (T.softmax, T.log_softmax)]
    return results, outcome(lambda: T.ones(2, dtype=T.int64).softmax(0), "not implemented for 'Long'")
