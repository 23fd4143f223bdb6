"""`torch.func` beside PyTorch: each transform, all pairs of them, and what they are used for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import flambeau
from tests.support.differential import differential, outcome


def _data(T: Any, *shape: int, start: float = 0.3) -> Any:
    count = 1
    for size in shape:
        count *= size
    return T.sin(T.arange(count, dtype=T.float64) * 1.7 + start).reshape(shape)


# Functions of a vector of three elements.
FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "sin": lambda T: lambda x: x.sin() * x,
    "sum": lambda T: lambda x: x.exp() * x.sum(),
    "softmax": lambda T: lambda x: x.softmax(0),
    "matmul": lambda T: lambda x: _data(T, 2, 3) @ x.tanh(),
    "outer": lambda T: lambda x: (x.unsqueeze(1) * x).sum(0),
    "index": lambda T: lambda x: x[T.tensor([2, 0, 0])] * x[1:].prod(),
    "in_place": lambda T: lambda x: x.clone().mul_(2).add_(x * x),
    "views": lambda T: lambda x: T.cat([x.flip(0), x[:2]]).reshape(5, 1).squeeze(1) * 3,
    "where": lambda T: lambda x: T.where(x > 0, x**3, x**2),
    "norm": lambda T: lambda x: x / (x * x).sum().sqrt(),
    "sort": lambda T: lambda x: x.sort()[0] * T.arange(3, dtype=T.float64),
    "standard": lambda T: lambda x: (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt(),
    "cumsum": lambda T: lambda x: x.cumsum(0) + x.logsumexp(0),
}


def _scalar(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: (function(x) * function(x)).sum()


def _seen(result: Any) -> Any:
    """Of results the values, and whether they are part of a graph: strides and names of nodes are free here."""
    if isinstance(result, (tuple, list)):
        return [_seen(each) for each in result]
    if isinstance(result, dict):
        return {name: _seen(each) for name, each in result.items()}
    return result.numpy(force=True), result.requires_grad


# Each makes of a function of a vector another one.
TRANSFORMS: dict[str, Callable[[Any, Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "vmap": lambda T, f: lambda x: T.func.vmap(f)(T.stack([x, x * 0.5])),
    "grad": lambda T, f: T.func.grad(_scalar(f)),
    "vjp": lambda T, f: lambda x: _pulled(T, f, x),
    "jvp": lambda T, f: lambda x: T.func.jvp(f, (x,), (x.cos(),))[1],
    "jacrev": lambda T, f: T.func.jacrev(f),
    "jacfwd": lambda T, f: T.func.jacfwd(f),
    "hessian": lambda T, f: T.func.hessian(_scalar(f)),
    "linearize": lambda T, f: lambda x: _pushed(T, f, x),
    "functionalize": lambda T, f: _functional(T, f),
}


def _pushed(T: Any, f: Callable[[Any], Any], x: Any) -> Any:
    """PyTorch's `linearize` traces the function, which it cannot do inside another transform: its `jvp` can."""
    return (T.func.linearize(f, x)[1](x.cos())) if T is flambeau else T.func.jvp(f, (x,), (x.cos(),))[1]


def _functional(T: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """PyTorch's `functionalize` stops at an internal assertion inside of itself."""
    if T is not flambeau and hasattr(f, "functional"):
        return f
    made: Any = T.func.functionalize(f)
    made.functional = True
    return made


def _pulled(T: Any, f: Callable[[Any], Any], x: Any) -> Any:
    output, product = T.func.vjp(f, x)
    return product(output.cos())[0]


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(TRANSFORMS, repeat=2)))
@differential(tolerance=1e-9)
def test_pairs(T: Any, outer: str, inner: str) -> Any:
    return [
        _seen(TRANSFORMS[outer](T, TRANSFORMS[inner](T, function(T)))(_data(T, 3))) for function in FUNCTIONS.values()
    ]


@pytest.mark.parametrize("outer", ["grad", "jvp", "jacrev", "jacfwd", "hessian"])
def test_layer_norm_in_pairs(outer: str) -> None:
    """PyTorch's second derivatives of this function, forward and backward mixed, are not those of its formula."""
    for inner in TRANSFORMS.values():
        by_op, by_formula = (
            TRANSFORMS[outer](flambeau, inner(flambeau, each))(_data(flambeau, 3))
            for each in (lambda x: flambeau.nn.functional.layer_norm(x, (3,)), FUNCTIONS["standard"](flambeau))
        )
        numpy.testing.assert_allclose(by_op.numpy(), by_formula.numpy(), rtol=1e-9, atol=1e-9)


# ----- what they are used for ---------------------------------------------------------------------------------------


def _convnet(T: Any) -> Any:
    T.manual_seed(0)
    return T.nn.Sequential(
        T.nn.Conv2d(1, 4, 3), T.nn.ReLU(), T.nn.MaxPool2d(2), T.nn.GroupNorm(2, 4), T.nn.Flatten(), T.nn.Linear(36, 3)
    )


@differential(tolerance=1e-4)
def test_gradients_of_each_sample_of_a_convnet(T: Any) -> Any:
    model = _convnet(T)
    weights = {name: each.detach() for name, each in model.named_parameters()}

    def loss(weights: Any, image: Any, label: Any) -> Any:
        scores = T.func.functional_call(model, weights, (image.unsqueeze(0),))
        return T.nn.functional.cross_entropy(scores, label.unsqueeze(0))

    images, labels = _data(T, 5, 1, 8, 8).float(), T.tensor([0, 2, 1, 1, 0])
    each = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    chunked = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0), chunk_size=2)(weights, images, labels)
    return _seen(each), _seen(chunked)


@differential(tolerance=1e-4)
def test_ensemble_of_stacked_models(T: Any) -> Any:
    T.manual_seed(0)
    models = [T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 2)).eval() for _ in range(3)]
    parameters, buffers = T.func.stack_module_state(models)

    def run(parameters: Any, buffers: Any, x: Any) -> Any:
        return T.func.functional_call(models[0], (parameters, buffers), (x,))

    x = _data(T, 5, 3).float()
    together = T.func.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x)
    one_each = T.func.vmap(run)(parameters, buffers, T.stack([x, x * 2, x * 3]))
    return _seen(together), _seen(one_each)


@differential(tolerance=1e-4)
def test_ensembles_are_trained_through_vmap(T: Any) -> Any:
    T.manual_seed(0)
    models = [T.nn.Linear(3, 1) for _ in range(3)]
    parameters, buffers = T.func.stack_module_state(models)
    x = _data(T, 5, 3).float()
    predicted = T.vmap(lambda p, b: T.func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    predicted.square().sum().backward()
    return {name: _seen(each.grad) for name, each in parameters.items()}


@differential(tolerance=1e-9)
def test_learning_to_learn(T: Any) -> Any:
    """The gradient through steps of gradient descent, for many tasks at once."""

    def loss(weight: Any, x: Any, y: Any) -> Any:
        return ((x @ weight).tanh() - y).square().mean()

    def after_steps(weight: Any, x: Any, y: Any) -> Any:
        for _ in range(2):
            weight = weight - 0.1 * T.func.grad(loss)(weight, x, y)
        return loss(weight, x, y)

    def over_tasks(weight: Any) -> Any:
        return T.func.vmap(after_steps, in_dims=(None, 0, 0))(weight, _data(T, 4, 5, 3), _data(T, 4, 5)).mean()

    return _seen(T.func.grad_and_value(over_tasks)(_data(T, 3)))


@differential(tolerance=1e-9)
def test_structures_and_auxiliary_results(T: Any) -> Any:
    x = {"a": _data(T, 2), "b": (_data(T, 3), _data(T, 2, 2))}

    def f(x: Any, scale: float) -> Any:
        first, (second, third) = x["a"], x["b"]
        value = (first.sum() * second.prod() + third.sum()) * scale
        return value, {"twice": value * 2, "first": first}

    def total(x: Any) -> Any:
        return f(x, 3.0)[0]

    return [
        _seen(T.func.grad(f, has_aux=True)(x, 2.0)),
        _seen(T.func.grad_and_value(total)(x)),
        _seen(T.func.jacrev(lambda x: f(x, 1.0)[1])(x)),
        _seen(T.func.jacfwd(lambda x: f(x, 1.0)[1])(x)),
        _seen(T.func.jacrev(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(_data(T, 2), _data(T, 2))),
        _seen(T.func.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(_data(T, 2), _data(T, 2))),
        _seen(T.func.vjp(lambda x: f(x, 1.0), x, has_aux=True)[1](T.ones((), dtype=T.float64))),
    ]


@differential(tolerance=1e-9)
def test_results_stay_in_the_graph_of_what_leads_to_them(T: Any) -> Any:
    w = _data(T, 3).requires_grad_()
    x = _data(T, 3, start=1.0)
    through = T.func.grad(lambda x: (w * x * x).sum())(x)
    through.sum().backward()
    with T.no_grad():
        cut = T.func.grad(lambda x: (w * x * x).sum())(w)
    return _seen(through), _seen(w.grad), _seen(cut), _seen(T.func.grad(lambda x: (x * x).sum())(w))


@differential(tolerance=1e-9)
def test_linearize(T: Any) -> Any:
    output, linear = T.func.linearize(lambda x: x.sin() * x.sum(), _data(T, 3))
    return _seen(output), _seen(linear(_data(T, 3))), _seen(linear(T.ones(3, dtype=T.float64)))


@pytest.mark.parametrize("name", ["softmax", "index", "in_place", "norm"])
def test_tangents_through_vmap(name: str) -> None:
    """Dual tensors inside of `vmap`, which PyTorch has not, and around it: the tangents of each example."""
    T, forward_ad = flambeau, flambeau.autograd.forward_ad
    function = FUNCTIONS[name](T)
    x, t = _data(T, 2, 3), _data(T, 2, 3, start=1.0)

    def tangent(x: Any, t: Any) -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(function(forward_ad.make_dual(x, t))).tangent

    expected = T.stack([T.func.jvp(function, (x[i],), (t[i],))[1] for i in range(2)]).numpy()
    with forward_ad.dual_level():
        around = forward_ad.unpack_dual(T.func.vmap(function)(forward_ad.make_dual(x, t))).tangent
    crossed = T.func.vmap(T.func.vmap(tangent, (None, 0)), (0, None))(x, t)
    for each in (T.func.vmap(tangent)(x, t), around, T.stack([crossed[0, 0], crossed[1, 1]])):
        assert each is not None
        assert not each.requires_grad
        numpy.testing.assert_allclose(each.numpy(), expected, rtol=1e-12, atol=1e-12)


@differential
def test_wrong_calls(T: Any) -> Any:
    x = _data(T, 3, 4)
    func = T.func
    return [
        outcome(lambda: func.grad(lambda a: a)(x), "to return a scalar Tensor"),
        outcome(lambda: func.grad(lambda a: (a, a))(x), "to return a Tensor"),
        outcome(lambda: func.grad(lambda a: a.sum(), argnums=2)(x), "Got argnum=2, but only 1 positional inputs"),
        outcome(lambda: func.grad(lambda a: a.sum(), argnums="a")(x), "argnums must be int or Tuple[int, ...]"),
        outcome(lambda: func.grad(lambda a: a.sum(), argnums=(0, 0))(x), "argnums elements must be unique"),
        outcome(lambda: func.grad(lambda a: a.sum())(1.0), "must be Tensor"),
        outcome(lambda: func.grad(lambda a: a.sum())(x.long()), "only Tensors of floating point dtype can require"),
        outcome(lambda: func.jvp(lambda a: a, x, x), "Expected primals to be a tuple"),
        outcome(lambda: func.jvp(lambda a: a, (x,), (x[0],)), "has a different size than that of the original"),
        outcome(lambda: func.jvp(lambda a: a, (x,), (x, x)), "to have the same python structure"),
        outcome(lambda: func.jvp(lambda a: 1, (x,), (x,)), "to return only tensors"),
        outcome(lambda: func.jvp(lambda a: a, (), ()), "to contain at least one Tensor"),
        outcome(lambda: func.vjp(lambda a: 1, x), "to return only tensors"),
        outcome(lambda: func.vjp(lambda a: a, x)[1](x[0]), "Mismatch in shape"),
        outcome(lambda: func.vjp(lambda a: a, x)[1]((x, x)), "Expected pytree structure of cotangents"),
        outcome(lambda: func.jacrev(lambda a: a, chunk_size=0)(x), "`chunk_size` should be greater than 0."),
    ]
