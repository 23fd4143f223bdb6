"""Custom functions under `vmap`: the user's rule is asked, and derivatives of examples are those of `backward`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from tests.support.differential import differential, outcome


def scaled(T: Any, **members: Any) -> Any:
    """weight * x**2, whose backward says 5 times as much, so that nothing else can have computed it."""

    class Scaled(T.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, weight: Any, offset: float = 0.0) -> Any:
            return weight * x**2 + offset, x.argmax()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, weight, *_ = inputs
            ctx.save_for_backward(x, weight)
            ctx.save_for_forward(x, weight)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            x, weight = ctx.saved_tensors
            return 5 * grad * 2 * x * weight, 5 * grad * x**2, *([None] * (len(ctx.needs_input_grad) - 2))

        @staticmethod
        def jvp(ctx: Any, x_tangent: Any, weight_tangent: Any, *_: Any) -> Any:
            x, weight = ctx.saved_tensors
            return 5 * (2 * x * weight * x_tangent + x**2 * weight_tangent), None

    return type("Scaled", (Scaled,), members)


def sorting(T: Any, seen: list[Any]) -> Any:
    """Sorting by NumPy: it cannot run on examples, so everything has to go by the rule."""

    class Sorted(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            array = x.detach().numpy()
            order = np.argsort(array, axis=dim)
            back = np.argsort(order, axis=dim)
            return T.tensor(np.take_along_axis(array, order, axis=dim)), T.tensor(back)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])
            ctx.dim = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            return grad.gather(ctx.dim, ctx.saved_tensors[0]), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int) -> Any:
            seen.append((info.batch_size, info.randomness, x.movedim(in_dims[0], 0).shape, in_dims[1]))
            return Sorted.apply(x.movedim(in_dims[0], 0), dim + 1 if dim >= 0 else dim), (0, 0)

    return Sorted


TRANSFORMS = {
    "vmap": lambda f, one, x, w: f.vmap(one)(x, w),
    "one weight": lambda f, one, x, w: f.vmap(one, (0, None))(x, w[0]),
    "other dimensions": lambda f, one, x, w: f.vmap(one, (1, None), 1)(x, w[:, 0]),
    "grad of examples": lambda f, one, x, w: f.vmap(f.grad(lambda x, w: one(x, w).sum(), (0, 1)))(x, w),
    "grad of all": lambda f, one, x, w: f.grad(lambda x, w: f.vmap(one)(x, w).sum(), (0, 1))(x, w),
    "grad of one weight": lambda f, one, x, w: f.grad(lambda w: f.vmap(one, (0, None))(x, w).sum())(w[0]),
    "jacobian": lambda f, one, x, w: f.vmap(f.jacrev(one))(x, w).contiguous(),
    "second derivative": lambda f, one, x, w: f.vmap(f.grad(lambda x: f.grad(lambda x: one(x, w[0]).sum())(x).sum()))(
        x
    ),
    "nested": lambda f, one, x, w: f.vmap(f.vmap(one), (0, None))(x[None], w),
    "nested grad": lambda f, one, x, w: f.vmap(f.vmap(f.grad(lambda x, w: one(x, w))))(x, w),
    "tangent": lambda f, one, x, w: f.jvp(f.vmap(one), (x, w), (w, x))[1],
}


@pytest.mark.parametrize("name", TRANSFORMS)
@differential
def test_forward_and_backward_on_examples(T: Any, name: str) -> Any:
    function = scaled(T)
    T.manual_seed(0)
    x, w = T.randn(2, 3), T.randn(2, 3)
    if name == "tangent":  # PyTorch asks jvp; here it is the derivative of the backward, which must say the same
        function = scaled(T, forward=staticmethod(lambda x, weight: (5 * weight * x**2, x.argmax())))
    return TRANSFORMS[name](T.func, lambda x, w: function.apply(x, w)[0], x, w)


@differential
def test_other_results_and_arguments(T: Any) -> Any:
    function = scaled(T)
    T.manual_seed(0)
    x = T.randn(2, 3)
    leaf = T.ones(3, requires_grad=True)
    value, index = T.func.vmap(lambda x: function.apply(x, leaf, 2.0))(x)
    value.sum().backward()
    return value.detach(), index, index.requires_grad, leaf.grad


@pytest.mark.parametrize("name", ["vmap", "other dimension", "grad", "jacobian", "nested"])
@differential
def test_rules(T: Any, name: str) -> Any:
    seen: list[Any] = []
    function, f = sorting(T, seen), T.func
    T.manual_seed(0)
    x = T.randn(2, 3)
    found = {
        "vmap": lambda: f.vmap(function.apply, (0, None))(x, 0),
        "other dimension": lambda: f.vmap(function.apply, (1, None), 1)(x, -1),
        "grad": lambda: f.vmap(f.grad(lambda x: (function.apply(x, 0)[0] * x[0]).pow(2).sum()))(x),
        "jacobian": lambda: f.vmap(f.jacrev(lambda x: function.apply(x, -1)[0]))(x).contiguous(),
        "nested": lambda: f.vmap(f.vmap(lambda x: function.apply(x, 0)[0]))(x.expand(4, 2, 3)),
    }[name]()
    return found, seen


def test_functionalize() -> None:
    """PyTorch refuses; a derivative is that of `backward` here too."""
    function, f, x = scaled(flambeau), flambeau.func, flambeau.tensor([1.0, 2.0])

    def changing(x: Any) -> Any:
        return function.apply(x.clone().add_(1), flambeau.ones(2))[0].sum()

    expected = flambeau.tensor([20.0, 30.0])
    assert f.grad(f.functionalize(changing))(x).equal(expected)
    assert f.functionalize(f.grad(changing))(x).equal(expected)
    assert f.functionalize(changing)(x).equal(changing(x))


@differential
def test_rules_that_say_too_little_or_too_much(T: Any) -> Any:
    both = scaled(T, vmap=staticmethod(lambda info, in_dims, x, *rest: (x, 0)))
    short = scaled(T, vmap=staticmethod(lambda info, in_dims, x, *rest: x), generate_vmap_rule=False)
    return [
        outcome(
            lambda: T.func.vmap(both.apply)(T.ones(2), T.ones(2)),
            "generate_vmap_rule=True and an overridden vmap staticmethod",
        ),
        outcome(lambda: T.func.vmap(short.apply)(T.ones(2), T.ones(2)), "to have two returns, an output and out_dims"),
    ]
