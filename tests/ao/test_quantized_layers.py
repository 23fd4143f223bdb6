"""Products with packed integers and the layers that use them: beside floats, beside PyTorch, by every tier."""

from __future__ import annotations

import copy
import platform
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.ao.nn.quantized import WeightOnlyLinear
from flambeau.ao.quantization import quantize_dynamic, quantize_weights_
from flambeau.backends.cpu import numpy_only
from tests.support.differential import differential, outcome
from tests.support.oracle import pytorch

ROWS = [1, 2, 3, 7, 16, 20]


def _numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("columns", "length"), [(5, 32), (33, 256), (8, 130)])
def test_int8_product(rows: int, columns: int, length: int) -> None:
    x, scales = _numbers(rows, length), np.abs(_numbers(columns)) + 0.1
    weight = np.random.default_rng(1).integers(-128, 128, (columns, length)).astype(np.int8)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) * scales
    tensors = [flambeau.from_numpy(each) for each in (x, weight, scales)]
    found = flambeau._weight_int8pack_mm(*tensors)
    with numpy_only():
        plain = flambeau._weight_int8pack_mm(*tensors)
    for each in (found, plain):
        np.testing.assert_allclose(each.numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("group", [32, 64, 128])
def test_int4_product(rows: int, group: int) -> None:
    columns, length = 33, 256
    x, scales = _numbers(rows, length), _numbers(length // group, columns, 2)
    numbers = np.random.default_rng(1).integers(0, 16, (columns, length)).astype(np.int32)
    factors = scales.transpose(1, 0, 2)
    weight = (numbers.reshape(columns, -1, group) - 8.0) * factors[:, :, :1] + factors[:, :, 1:]
    expected = x.astype(np.float64) @ weight.reshape(columns, length).T
    packed = flambeau._convert_weight_to_int4pack_for_cpu(flambeau.from_numpy(numbers), 2)
    assert packed.shape == (columns, length // 2)
    args = (flambeau.from_numpy(x), packed, group, flambeau.from_numpy(scales))
    found = flambeau._weight_int4pack_mm_for_cpu(*args)
    with numpy_only():
        plain = flambeau._weight_int4pack_mm_for_cpu(*args)
    for each in (found, plain):
        np.testing.assert_allclose(each.numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@differential(tolerance=1e-2)
def test_packed_products_beside_pytorch(T: Any) -> Any:
    x = T.from_numpy(_numbers(4, 64))
    weight = T.from_numpy(np.random.default_rng(1).integers(-128, 128, (32, 64)).astype(np.int8))
    numbers = T.from_numpy(np.random.default_rng(2).integers(0, 16, (64, 64)).astype(np.int32))
    packed = T._convert_weight_to_int4pack_for_cpu(numbers, 2)
    scales = T.from_numpy(np.abs(_numbers(2, 64, 2)))
    return {
        "int8": T._weight_int8pack_mm(x, weight, T.ones(32)),
        "int4": T._weight_int4pack_mm_for_cpu(x, packed, 32, scales),
        "int": T._int_mm(weight, weight.t().contiguous()),
        "wrong": (
            outcome(lambda: T._weight_int8pack_mm(x, weight.float(), T.ones(32)))[:2],
            outcome(lambda: T._weight_int4pack_mm_for_cpu(x, packed, 33, scales))[:2],
        ),
    }


@pytest.mark.parametrize(("bits", "error"), [(8, 0.01), (4, 0.12)])
def test_weight_only_layers(bits: int, error: float) -> None:
    flambeau.manual_seed(0)
    layer = nn.Linear(256, 48)
    small = WeightOnlyLinear.from_float(layer, bits=bits)
    x = flambeau.randn(3, 2, 256)
    expected = layer(x).detach()
    found = small(x)
    assert found.shape == expected.shape
    assert ((found - expected).norm() / expected.norm()).item() < error
    again = WeightOnlyLinear(256, 48, bits=bits)
    again.load_state_dict(small.state_dict())
    assert flambeau.equal(again(x), found)
    assert flambeau.equal(copy.deepcopy(small)(x), found)
    assert sum(each.nbytes for each in small.state_dict().values()) < 256 * 48 * bits / 8 * 1.3 + 400
    assert f"bits={bits}" in repr(small)


def test_weights_of_a_model() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Sequential(nn.Linear(32, 8, bias=False)))
    quantize_weights_(model, bits=4)
    assert [type(each).__name__ for each in model.modules()] == [
        "Sequential", "WeightOnlyLinear", "ReLU", "Sequential", "Linear",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="4 or 8 bits"):
        WeightOnlyLinear(8, 8, bits=3)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="PyTorch rounds otherwise there")
@pytest.mark.skipif(pytorch is None, reason="there is no PyTorch to compare with")
@pytest.mark.filterwarnings("ignore")  # PyTorch announces the end of these functions
@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])
def test_dynamic_quantization_beside_pytorch(shift: float) -> None:
    found = []
    for T in (pytorch, flambeau):
        T.manual_seed(0)
        model = T.nn.Sequential(T.nn.Linear(40, 24), T.nn.ReLU(), T.nn.Linear(24, 5))
        quantized = T.ao.quantization.quantize_dynamic(model, {T.nn.Linear}, dtype=T.qint8)
        assert type(model[0]) is T.nn.Linear, "it is a copy"
        x = T.from_numpy(_numbers(6, 40) + np.float32(shift))
        found.append((quantized(x).detach().numpy(), model(x).detach().numpy(), str(quantized)))
    (there, exact, shown_there), (here, _, shown_here) = found
    assert shown_here == shown_there
    assert np.abs(there - exact).max() > 1e-4
    np.testing.assert_allclose(here, there, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_dynamic_quantization_by_name() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    quantize_dynamic(model, {"1"}, inplace=True)
    assert [type(each).__name__ for each in model] == ["Linear", "Linear"]
    assert type(model[0]) is nn.Linear
    assert type(model[1]) is not nn.Linear
