"""`nn.init` and the initial values of layers: PyTorch's numbers for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned

SHAPES = [(3, 5), (17, 8), (4, 3, 5), (6, 2, 3, 3)]


def filled(T: Any, name: str, *args: Any, shape: Any = (6, 8), dtype: str = "float32", **options: Any) -> Any:
    T.manual_seed(7)
    tensor = T.nn.Parameter(T.empty(*shape, dtype=getattr(T, dtype)))
    result = getattr(T.nn.init, name)(tensor, *args, **options)
    return tensor, result is tensor, T.rand(1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@differential
def test_random_fills(T: Any, shape: Any) -> Any:
    normal_options: list[Any] = [{}, {"gain": 2.0}]
    kaiming = [
        {},
        {"a": 0.3},
        {"mode": "fan_out"},
        {"nonlinearity": "relu"},
        {"mode": "FAN_OUT", "nonlinearity": "tanh"},
    ]
    return (
        filled(T, "uniform_", -1, 2.5, shape=shape),
        filled(T, "normal_", 1.0, 0.1, shape=shape),
        [filled(T, "xavier_uniform_", shape=shape, **each) for each in normal_options],
        [filled(T, "xavier_normal_", shape=shape, **each) for each in normal_options],
        [filled(T, "kaiming_uniform_", shape=shape, **each) for each in kaiming],
        [filled(T, "kaiming_normal_", shape=shape, **each) for each in kaiming],
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "limits", [(0, 1, -2, 2), (0, 1, -0.1, 0.1), (0, 1, 1.5, 3), (0, 0.02, -2, 2), (-1, 0.5, 0, 0.2)], ids=str
)
@differential
def test_trunc_normal(T: Any, dtype: str, limits: Any) -> Any:
    return filled(T, "trunc_normal_", *limits, shape=(20, 13), dtype=dtype)


@pytest.mark.parametrize("shape", [*SHAPES, (5, 5), (1, 4)], ids=str)
@differential(tolerance=1e-5)
def test_orthogonal(T: Any, shape: Any) -> Any:
    return filled(T, "orthogonal_", shape=shape), filled(T, "orthogonal_", 2.0, shape=shape, dtype="float64")


@differential
def test_sparse(T: Any) -> Any:
    return filled(T, "sparse_", 0.3), filled(T, "sparse_", 0.91, 2.0, shape=(10, 3))


@differential
def test_fills_without_chance(T: Any) -> Any:
    return (
        filled(T, "constant_", 0.3),
        filled(T, "ones_"),
        filled(T, "zeros_"),
        [filled(T, "eye_", shape=each) for each in ((3, 5), (5, 3), (2, 2))],
        [filled(T, "dirac_", shape=each) for each in ((3, 5, 4), (5, 3, 3, 3), (2, 2, 1, 2, 3))],
        filled(T, "dirac_", 2, shape=(6, 2, 3)),
    )


@differential
def test_generators(T: Any) -> Any:
    def drawn(name: str, *args: Any) -> Any:
        return getattr(T.nn.init, name)(T.empty(6, 5), *args, generator=T.Generator().manual_seed(3))

    names = ["uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_"]
    names += ["kaiming_uniform_", "kaiming_normal_"]
    return [drawn(name) for name in names], drawn("sparse_", 0.5)


@differential(tolerance=1e-5)
def test_orthogonal_with_a_generator(T: Any) -> Any:
    return T.nn.init.orthogonal_(T.empty(4, 3), generator=T.Generator().manual_seed(3))


@differential
def test_gains(T: Any) -> Any:
    gain = T.nn.init.calculate_gain
    names = ["linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    return (
        [gain(name) for name in names],
        [gain("leaky_relu", each) for each in (0, 0.2, 3)],
        outcome(lambda: gain("x"), "Unsupported nonlinearity x"),
        [outcome(lambda v=v: gain("leaky_relu", v), "not a valid number") for v in ("a", True)],
    )


@differential
def test_misuse(T: Any) -> Any:
    init = T.nn.init
    few = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
    empty = T.empty
    return (
        [outcome(lambda n=n: getattr(init, n)(empty(3)), few) for n in ("xavier_uniform_", "kaiming_normal_")],
        outcome(lambda: init.kaiming_uniform_(empty(3, 2), mode="x"), "Mode x not supported, please use one of"),
        outcome(lambda: init.eye_(empty(3)), "Only tensors with 2 dimensions are supported"),
        outcome(lambda: init.sparse_(empty(3), 0.1), "Only tensors with 2 dimensions are supported"),
        outcome(lambda: init.dirac_(empty(3)), "Only tensors with 3, 4, or 5 dimensions are supported"),
        outcome(lambda: init.dirac_(empty(3, 2, 2), groups=2), "dim 0 must be divisible by groups"),
        outcome(lambda: init.orthogonal_(empty(3)), "Only tensors with 2 or more dimensions are supported"),
        outcome(lambda: init.uniform_(empty(3), 2, 1), "uniform_ expects to return a [from, to) range"),
        outcome(lambda: init.trunc_normal_(empty(3), 0, 1, 2, -2), "uniform_ expects to return a [from, to) range"),
        outcome(lambda: init.normal_(empty(3), 0, -1), "normal expects std >= 0.0"),
        warned(lambda: init.kaiming_normal_(empty(0, 3)), "Initializing zero-element tensors is a no-op"),
        warned(lambda: init.trunc_normal_(empty(3), 10).shape, "mean is more than 2 std from [a, b]"),
        [warned(lambda n=n: getattr(init, n)(empty(0, 3)))[1] for n in ("orthogonal_", "xavier_normal_")],
        init._calculate_fan_in_and_fan_out(empty(2, 3, 4, 5)),
    )


@differential
def test_names_of_old(T: Any) -> Any:
    def old(name: str, *args: Any) -> Any:
        T.manual_seed(1)
        return warned(lambda: getattr(T.nn.init, name)(T.empty(4, 3), *args), f"`nn.init.{name}` is now deprecated")

    names = ["uniform", "normal", "eye", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"]
    return [old(name) for name in names], old("constant", 2.0), old("sparse", 0.5), sorted(T.nn.init.__all__)


@differential
def test_linear_layers_begin_as_in_pytorch(T: Any) -> Any:
    nn = T.nn
    T.manual_seed(0)
    layers = [
        nn.Linear(5, 7),
        nn.Linear(3, 4, bias=False, dtype=T.float64),
        nn.Linear(300, 200),
        nn.Bilinear(2, 3, 4),
        nn.PReLU(3, init=0.1),
        nn.modules.linear.NonDynamicallyQuantizableLinear(2, 2),
    ]
    return [layer.state_dict() for layer in layers], T.rand(1)


@differential
def test_skip_init(T: Any) -> Any:
    skip = T.nn.utils.skip_init
    T.manual_seed(0)
    layer = skip(T.nn.Linear, 2, 3, dtype=T.float64)
    return (
        repr(layer),
        layer.weight.dtype,
        str(layer.weight.device),
        layer.weight.requires_grad,
        str(skip(T.nn.Linear, 2, 3, device="meta").weight.device),
        T.rand(1),
        outcome(lambda: skip(T.nn.ReLU), "Module must support a 'device' arg to skip initialization"),
        outcome(lambda: skip(int), "Expected a Module; got"),
    )
