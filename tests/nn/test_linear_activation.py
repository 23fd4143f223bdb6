"""Linear layers and activations: results, gradients, printing, pickling, signatures."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import flambeau
from tests.support.differential import compare, differential, outcome, warned

ACTIVATIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("CELU", (), {}),
    ("CELU", (2.0, True), {}),
    ("ELU", (), {}),
    ("ELU", (2,), {"inplace": True}),
    ("GELU", (), {}),
    ("GELU", ("tanh",), {}),
    ("GLU", (), {}),
    ("GLU", (0,), {}),
    ("Hardshrink", (), {}),
    ("Hardshrink", (0.1,), {}),
    ("Hardsigmoid", (True,), {}),
    ("Hardswish", (), {}),
    ("Hardtanh", (-2, 2), {}),
    ("Hardtanh", (), {"inplace": True}),
    ("LeakyReLU", (), {}),
    ("LeakyReLU", (0.2, True), {}),
    ("LogSigmoid", (), {}),
    ("LogSoftmax", (1,), {}),
    ("Mish", (), {}),
    ("Mish", (True,), {}),
    ("PReLU", (), {}),
    ("PReLU", (4,), {"init": 0.5}),
    ("ReLU", (), {}),
    ("ReLU", (True,), {}),
    ("ReLU6", (), {}),
    ("ReLU6", (True,), {}),
    ("RReLU", (), {}),
    ("RReLU", (0.1, 0.2, True), {}),
    ("SELU", (), {}),
    ("SELU", (True,), {}),
    ("SiLU", (True,), {}),
    ("Sigmoid", (), {}),
    ("Softmax", (), {"dim": 0}),
    ("Softmax2d", (), {}),
    ("Softmin", (2,), {}),
    ("Softplus", (), {}),
    ("Softplus", (2, 0.5), {}),
    ("Softshrink", (), {}),
    ("Softsign", (), {}),
    ("Tanh", (), {}),
    ("Tanhshrink", (), {}),
    ("Threshold", (0.1, 20), {}),
    ("Threshold", (0.1, 20, True), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), ACTIVATIONS, ids=str)
@pytest.mark.parametrize("training", [True, False])
@differential
def test_activations(T: Any, name: str, args: Any, kwargs: Any, training: bool) -> Any:
    T.manual_seed(0)
    module = getattr(T.nn, name)(*args, **kwargs).train(training)
    x = T.linspace(-4, 4, 2 * 4 * 6).reshape(2, 4, 6).requires_grad_()
    y = module(x * 1)
    y.sin().sum().backward()
    loaded = pickle.loads(pickle.dumps(module))
    return (
        repr(module),
        repr(loaded),
        y.detach(),
        x.grad,
        [each.grad for each in module.parameters()],
        module.state_dict(),
    )


@pytest.mark.parametrize("name", sorted({name for name, _, _ in ACTIVATIONS} | {"Linear", "Bilinear", "LazyLinear"}))
@differential
def test_signatures_and_constants(T: Any, name: str) -> Any:
    cls = getattr(T.nn, name)
    signature = inspect.signature(cls)
    return (
        [(each.name, str(each.kind), each.default) for each in signature.parameters.values()],
        getattr(cls, "__constants__", []),
        cls.__name__,
        cls.__module__.partition(".")[2],
        [each.__name__ for each in cls.__mro__ if each.__name__ == "Hardtanh"],
    )


@differential
def test_misused_activations(T: Any) -> Any:
    nn = T.nn
    return (
        warned(lambda: repr(nn.Hardtanh(min_value=-3, max_value=3)), "keyword argument `min_value` is deprecated"),
        outcome(lambda: nn.Hardtanh(3, 2), "max_val (2) must be greater than min_val (3)"),
        outcome(lambda: nn.Softmax2d()(T.ones(2, 2)), "Softmax2d: expected input to be 3D or 4D, got 2D instead"),
        outcome(lambda: nn.GELU("x")(T.ones(2)), "approximate argument must be either none or tanh"),
        warned(lambda: nn.Softmax()(T.ones(2)), "Implicit dimension choice for softmax has been deprecated"),
        warned(lambda: nn.LogSoftmax()(T.ones(2)), "Implicit dimension choice for log_softmax has been deprecated"),
        warned(lambda: nn.Softmin()(T.ones(2)), "Implicit dimension choice for softmin has been deprecated"),
        outcome(lambda: nn.Sigmoid(3), "Sigmoid.__init__() takes 1 positional argument but 2 were given"),
    )


@differential
def test_linear(T: Any) -> Any:
    T.manual_seed(0)
    nn = T.nn
    layer, plain = nn.Linear(4, 3), nn.Linear(4, 3, bias=False)
    x = T.linspace(-1, 1, 24).reshape(2, 3, 4).requires_grad_()
    y = layer(x)
    y.sin().sum().backward()
    return (
        repr(layer),
        repr(plain),
        y,
        plain(x),
        plain.bias,
        x.grad,
        layer.weight.grad,
        layer.bias.grad,
        layer(T.ones(4)),
        nn.Linear(2, 3, device="meta").weight,
        outcome(lambda: layer(T.ones(1, 5)), "mat1 and mat2 shapes cannot be multiplied (1x5 and 4x3)"),
        outcome(lambda: layer(T.ones(1, 4, dtype=T.float64)), "mat1 and mat2 must have the same dtype, but got Double"),
        outcome(lambda: nn.Linear(-1, 3), "negative dimension -1"),
        warned(lambda: repr(nn.Linear(0, 3)), "Initializing zero-element tensors is a no-op"),
        repr(nn.modules.linear.NonDynamicallyQuantizableLinear(2, 2)),
        repr(pickle.loads(pickle.dumps(layer))),
    )


@differential
def test_bilinear(T: Any) -> Any:
    T.manual_seed(0)
    layer = T.nn.Bilinear(2, 3, 4)
    a = T.linspace(-1, 1, 10).reshape(5, 2).requires_grad_()
    b = T.linspace(-2, 1, 15).reshape(5, 3).requires_grad_()
    y = layer(a, b)
    y.sin().sum().backward()
    return (
        repr(layer),
        repr(T.nn.Bilinear(2, 3, 4, bias=False)),
        y,
        a.grad,
        b.grad,
        layer.weight.grad,
        layer.bias.grad,
        outcome(lambda: T.nn.Bilinear(0, 1, 3), "in1_features must be > 0, but got (in1_features=0)"),
    )


@differential
def test_identity(T: Any) -> Any:
    x = T.ones(2)
    identity = T.nn.Identity(54, unused=True)
    return identity(x) is x, repr(identity)


def test_every_class_is_where_it_says() -> None:
    for name in flambeau.nn.modules.__all__:
        value = getattr(flambeau.nn, name)
        if isinstance(value, type) and issubclass(value, flambeau.nn.Module):
            assert pickle.loads(pickle.dumps(value)) is value


def test_names_are_pytorchs() -> None:
    def names(T: Any) -> Any:
        linear, activation, container = T.nn.modules.linear, T.nn.modules.activation, T.nn.modules.container
        return [sorted({*each.__all__} - {"MultiheadAttention"}) for each in (linear, activation, container)]

    compare(names)
