"""`utils.flop_counter`: PyTorch's counts, module by module and operator by operator."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest

import flambeau
from flambeau.utils.flop_counter import FlopCounterMode, register_flop_formula
from tests.support.differential import differential


def counted(T: Any, program: Any, **options: Any) -> Any:
    mode = importlib.import_module(f"{T.__name__}.utils.flop_counter").FlopCounterMode(display=False, **options)
    with mode:
        program()
    counts = {name: {str(op): n for op, n in each.items()} for name, each in mode.get_flop_counts().items()}
    return counts, mode.get_total_flops()


@differential
def test_convnet_forward_and_backward(T: Any) -> Any:
    nn = T.nn
    inner = nn.Sequential(nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(64, 10))
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), inner)
    x = T.randn(2, 3, 8, 8)
    once = counted(T, lambda: net(x).sum().backward())
    twice = counted(T, lambda: [net(x).sum().backward() for _ in range(2)])
    with T.no_grad():
        return once, twice, counted(T, lambda: net(x))


@differential
def test_transformer_layer(T: Any) -> Any:
    layer = T.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return counted(T, lambda: layer(T.randn(2, 6, 16)).sum().backward())


@pytest.mark.parametrize(
    ("name", "args", "options", "shape"),
    [
        ("Conv1d", (4, 6, 3), {"groups": 2}, (2, 4, 9)),
        ("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1}, (2, 4, 9, 8)),
        ("Conv3d", (2, 3, 2), {}, (1, 2, 4, 5, 6)),
        ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "groups": 2}, (2, 4, 5, 5)),
        ("Linear", (4, 6), {}, (2, 3, 4)),
        ("Linear", (4, 6), {"bias": False}, (2, 3, 4)),
        ("RNN", (4, 5), {}, (3, 2, 4)),
        ("GRU", (4, 5), {"num_layers": 2}, (3, 2, 4)),
        ("GRU", (4, 5), {"bias": False, "bidirectional": True}, (3, 2, 4)),
        ("LSTM", (4, 5), {}, (3, 2, 4)),
        ("LSTM", (4, 5), {"bias": False, "bidirectional": True, "num_layers": 2}, (3, 2, 4)),
        ("LSTM", (4, 5), {"proj_size": 3, "bias": False}, (3, 2, 4)),
    ],
)
@differential
def test_layers(T: Any, name: str, args: Any, options: Any, shape: Any) -> Any:
    layer = getattr(T.nn, name)(*args, **options)
    x = T.randn(*shape, requires_grad=True)

    def run() -> None:
        output = layer(x)
        (output[0] if isinstance(output, tuple) else output).sum().backward()

    with T.backends.mkldnn.flags(enabled=False):  # oneDNN's LSTM is one operator, which PyTorch has no formula for
        return counted(T, run)


@differential
def test_products(T: Any) -> Any:
    def run() -> None:
        T.randn(3, 4) @ T.randn(4)
        T.randn(3, 3) @ T.randn(5, 3, 3)
        T.randn(2, 3, 4, 5) @ T.randn(5, 6)
        T.randn(2, 1, 4, 5) @ T.randn(7, 5, 6)
        T.einsum("ij,jk->ik", T.ones(2, 3), T.ones(3, 4))
        T.baddbmm(T.ones(2, 3, 3), T.ones(2, 3, 4), T.ones(2, 4, 3))
        T.addmm(T.ones(3), T.ones(2, 4), T.ones(4, 3))

    return counted(T, run)


@differential
def test_formulas_of_one_s_own(T: Any) -> Any:
    def elements(*args: Any, out_shape: Any = None, **kwargs: Any) -> int:
        return math.prod(out_shape)

    return counted(T, lambda: T.ones(2, 3).exp() + 1, custom_mapping={T.ops.aten.add: elements})


def test_attention_is_two_products_and_backward_five() -> None:
    """PyTorch counts its kernels for CUDA like this; on the CPU it has no formula."""
    query = flambeau.randn(2, 4, 8, 16, requires_grad=True)
    product = 2 * 2 * 4 * 8 * 8 * 16
    with FlopCounterMode(display=False) as counter:
        result = flambeau.nn.functional.scaled_dot_product_attention(query, query, query)
    assert counter.get_total_flops() == 2 * product
    with FlopCounterMode(display=False) as counter:
        result.sum().backward()
    assert counter.get_total_flops() == 5 * product


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    net = flambeau.nn.Sequential(flambeau.nn.Linear(3, 4), flambeau.nn.Linear(4, 5))
    with FlopCounterMode(depth=2):
        net(flambeau.ones(1, 3))
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed[2:]] == [
        ["Global", "64", "100.00%"],
        ["-", "aten.addmm", "64", "100.00%"],
        ["Sequential", "64", "100.00%"],
        ["-", "aten.addmm", "64", "100.00%"],
        ["Sequential.0", "24", "37.50%"],
        ["-", "aten.addmm", "24", "37.50%"],
        ["Sequential.1", "40", "62.50%"],
        ["-", "aten.addmm", "40", "62.50%"],
    ]


def test_register_refuses_functions_and_doubles() -> None:
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(flambeau.add)(lambda: 0)
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.mm"):
        register_flop_formula(flambeau.ops.aten.mm)(lambda: 0)
