"""Gradients where no derivative exists: minimum-norm sub-gradients, continuity, infinities, NaN, integer results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome

INF, NAN = float("inf"), float("nan")

# (expression over x, points): the gradient of its sum at these points.
POINTS: list[tuple[str, list[float]]] = [
    ("x.abs()", [0.0, -0.0, -1.0, 2.0, INF, -INF, NAN]),
    ("x.relu()", [0.0, -0.0, -1.0, 1.0, NAN, INF]),
    ("T.relu(-x)", [0.0, 1.0]),
    ("x.sqrt()", [0.0, 1.0, -1.0, INF, NAN]),
    ("x.rsqrt()", [0.0, -1.0, 4.0]),
    ("x.log()", [0.0, -1.0, 1.0, NAN, INF]),
    ("x.log1p()", [-1.0, -2.0, 0.0]),
    ("x.log2()", [0.0, -1.0]),
    ("x.sign()", [0.0, -2.0, 3.0]),
    ("x.sgn()", [0.0, -2.0, 3.0]),
    ("x.floor()", [0.0, 0.5, 1.0]),
    ("x.ceil()", [0.0, 0.5, 1.0]),
    ("x.round()", [0.5, 1.5, 1.0]),
    ("x.trunc()", [0.5, -1.0]),
    ("x.frac()", [0.5, 1.0, -1.5]),
    ("x.clamp(0, 1)", [-1.0, 0.0, 0.5, 1.0, 2.0, NAN]),
    ("x.clamp(min=0)", [-1.0, 0.0, 0.5, NAN]),
    ("x.clamp(max=0)", [-1.0, 0.0, 0.5]),
    ("x.clamp(1, 0)", [-1.0, 0.0, 0.5, 1.0, 2.0]),
    ("x.clamp(T.zeros(3), T.ones(3))", [-1.0, 0.0, 1.0]),
    ("x.norm()", [0.0, 0.0]),
    ("x.norm(1)", [0.0, -1.0, 2.0]),
    ("x.norm(3)", [0.0, 0.0]),
    ("x.norm(INF)", [1.0, -1.0, 0.5]),
    ("x.norm(-INF)", [1.0, -1.0, 0.5]),
    ("x.norm(0)", [0.0, 1.0]),
    ("x.norm(0.5)", [0.0, 1.0]),
    ("T.linalg.vector_norm(x)", [0.0, 0.0]),
    ("T.dist(x, T.zeros(2))", [0.0, 0.0]),
    ("x.max()", [1.0, 3.0, 3.0]),
    ("x.min()", [1.0, 1.0, 3.0]),
    ("x.amax(0)", [1.0, 3.0, 3.0]),
    ("x.amin(0)", [1.0, 1.0, 3.0]),
    ("x.max(0).values", [3.0, 1.0, 3.0]),
    ("x.min(0).values", [1.0, 1.0, 3.0]),
    ("x.median()", [2.0, 1.0, 2.0]),
    ("x.median(0).values", [2.0, 1.0, 2.0]),
    ("x.mode().values", [2.0, 1.0, 2.0]),
    ("x.max()", [1.0, NAN, 3.0]),
    ("x.amax(0)", [NAN, 1.0, NAN]),
    ("x.sort().values.mul(T.arange(3.0))", [1.0, 1.0, 0.0]),
    ("x.topk(2).values.mul(T.arange(2.0))", [1.0, 1.0, 1.0]),
    ("x.cummax(0).values", [1.0, 1.0, 0.0]),
    ("T.maximum(x, T.zeros(3))", [0.0, 1.0, -1.0]),
    ("T.minimum(x, T.zeros(3))", [0.0, 1.0, -1.0]),
    ("T.maximum(x, x)", [2.0]),
    ("T.fmax(x, T.tensor([0.0, NAN, 1.0]))", [0.0, 1.0, NAN]),
    ("T.fmin(x, T.tensor([0.0, NAN, 1.0]))", [0.0, 1.0, NAN]),
    ("x ** 0", [0.0, 1.0]),
    ("x ** 0.5", [0.0, 4.0]),
    ("x ** 1", [0.0, NAN]),
    ("x ** 2", [0.0, INF]),
    ("x ** -1", [0.0]),
    ("x ** 3", [-1.0, 0.0]),
    ("2 ** x", [0.0, -INF]),
    ("0 ** x", [0.0, 1.0, 2.0]),
    ("T.pow(x, x)", [0.0, 1.0, -1.0]),
    ("T.pow(T.zeros(3), x)", [0.0, 1.0, -1.0]),
    ("1 / x", [0.0, INF]),
    ("x / x", [0.0, 2.0]),
    ("x.reciprocal()", [0.0]),
    ("x.prod()", [0.0, 2.0, 3.0]),
    ("x.prod()", [0.0, 0.0, 3.0]),
    ("x.prod(0)", [0.0, 0.0, 3.0]),
    ("x.cumprod(0)", [1.0, 0.0, 3.0, 0.0, 2.0]),
    ("x.std()", [1.0, 1.0, 1.0]),
    ("x.var()", [1.0, 1.0]),
    ("x.std(unbiased=False)", [2.0, 2.0]),
    ("T.atan2(x, T.zeros(2))", [0.0, 1.0]),
    ("T.hypot(x, T.zeros(2))", [0.0, 1.0]),
    ("x.acos()", [1.0, -1.0, 2.0]),
    ("x.asin()", [1.0, 2.0]),
    ("x.acosh()", [1.0, 0.5]),
    ("x.atanh()", [1.0, 2.0]),
    ("x.remainder(2)", [2.0, -1.0, 0.0]),
    ("x.fmod(2)", [2.0, -1.0]),
    ("T.remainder(T.full((2,), 5.0), x)", [2.0, -2.0]),
    ("x.logsumexp(0)", [-INF, -INF]),
    ("x.logsumexp(0)", [INF, 1.0]),
    ("x.softmax(0).mul(T.arange(2.0))", [-INF, 0.0]),
    ("x.log_softmax(0).mul(T.arange(2.0))", [50.0, -50.0]),
    ("T.where(x > 0, x.sqrt(), T.zeros(()))", [0.0, 4.0]),
    ("T.where(x > 0, x, x * 2)", [0.0, 1.0]),
    ("x.masked_fill(x == 0, 5.0)", [0.0, 1.0]),
    ("T.nan_to_num(x)", [NAN, INF, -INF, 1.0]),
    ("x.logit()", [0.0, 1.0, 0.5]),
    ("x.sigmoid()", [-1000.0, 1000.0, 0.0]),
    ("x.tanh()", [-100.0, 100.0, 0.0]),
    ("x.exp()", [-1000.0, 1000.0]),
    ("x.sinc()", [0.0, 1.0]),
    ("T.logaddexp(x, x)", [-INF, 0.0]),
    ("x.erfinv()", [0.0, 1.0]),
    ("T.threshold(x, 1.0, 0.0)", [1.0, 0.0, 2.0]),
]


@pytest.mark.parametrize(("expression", "points"), POINTS)
@differential
def test_gradient_at(T: Any, expression: str, points: list[float]) -> Any:
    x = T.tensor(points, dtype=T.float64, requires_grad=True)
    space = {"T": T, "x": x, "INF": INF, "NAN": NAN}
    y = eval(expression, space)
    if y.dim() != 0:
        y = y.sum()
    y.backward()
    return None if x.grad is None else x.grad.clone()  # PyTorch's own may be a zero without memory


@pytest.mark.parametrize("expression", ["z.abs()", "z.angle()", "z.sgn()", "(z * z.conj()).real", "z.norm()"])
@differential
def test_complex_gradient_at_zero(T: Any, expression: str) -> Any:
    z = T.tensor([0j, 1 + 1j, -2 + 0j], dtype=T.complex128, requires_grad=True)
    y = eval(expression, {"z": z})
    y.sum().backward(*([T.tensor(1 + 0j, dtype=T.complex128)] if y.is_complex() else []))
    return z.grad


@pytest.mark.parametrize(
    "expression",
    ["x.argmax()", "x.argmin()", "x.argsort()", "x > 1", "x == x", "x.isnan()", "x.long()", "x.bool()", "x.nonzero()"]
    + [
        "x.sort().indices",
        "x.max(0).indices",
        "x.topk(1).indices",
        "x.int()",
        "x.logical_not()",
        "x.signbit()",
        "x.numel()",
    ]
    + ["T.isclose(x, x)", "x.count_nonzero()", "T.searchsorted(x, x)", "T.bucketize(x, x)", "x.any()", "x.all()"],
)
@differential
def test_discrete_results_carry_no_history(T: Any, expression: str) -> Any:
    x = T.tensor([1.0, 3.0, 2.0], requires_grad=True)
    y = eval(expression, {"T": T, "x": x})
    if isinstance(y, int):
        return y
    return y, outcome(y.sum().backward, "does not require grad and does not have a grad_fn")


@differential
def test_discrete_result_as_leaf_of_a_loss(T: Any) -> Any:
    x = T.tensor([1.0, 3.0, 2.0], requires_grad=True)
    y = x * x.argmax() + (x > 1)
    y.sum().backward()
    return y, x.grad


@pytest.mark.parametrize("name", ["bernoulli", "multinomial", "normal", "rand_like", "randn_like"])
@differential
def test_random_ops(T: Any, name: str) -> Any:
    x = T.tensor([0.25, 0.5, 0.25], requires_grad=True)
    makers: dict[str, Any] = {
        "bernoulli": lambda: T.bernoulli(x),
        "multinomial": lambda: T.multinomial(x, 2),
        "normal": lambda: T.normal(x, 1.0),
        "rand_like": lambda: T.rand_like(x),
        "randn_like": lambda: T.randn_like(x),
    }
    y = makers[name]()
    node = None if y.grad_fn is None else y.grad_fn.name()
    if y.requires_grad:
        y.sum().backward()
    return y.requires_grad, node, x.grad


@differential
def test_dropout_scales_the_gradient_by_its_mask(T: Any) -> Any:
    x = T.ones(100, requires_grad=True)
    y = T.dropout(x, 0.5, True)
    y.sum().backward()
    return bool((y == x.grad).all()), sorted(set(y.tolist()))


@differential
def test_non_differentiable_op_raises_in_backward(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    cases = [lambda: T.igamma(x, x + 1), lambda: x // 2]
    return [
        outcome(lambda make=make: make().sum().backward(), "derivative for", "is not implemented") for make in cases
    ]


@differential
def test_second_derivatives_at_kinks(T: Any) -> Any:
    results = []
    for make in (lambda x: x.abs(), lambda x: x.relu(), lambda x: x.norm(), lambda x: x**2, lambda x: x.clamp(0, 1)):
        x = T.zeros(2, dtype=T.float64, requires_grad=True)
        (first,) = T.autograd.grad(make(x).sum(), x, create_graph=True)
        if first.requires_grad:
            results.append((first.tolist(), T.autograd.grad(first.sum(), x)[0].clone()))
        else:
            results.append((first.tolist(), None))
    return results


@pytest.mark.parametrize("gradient", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@differential
def test_medians_pass_nothing_on_to_other_elements(T: Any, name: str, gradient: float) -> Any:
    """Not even of a gradient that is no number."""
    x = T.tensor([1.0, 2.0, 3.0, 2.0], requires_grad=True)
    return T.autograd.grad(getattr(x, name)(), x, T.tensor(gradient))
