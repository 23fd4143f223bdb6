"""Recurrent layers and attention with quantized weights, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's quantization is deprecated in favour of another package


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    """Quantized layers are for use, not for training: how PyTorch would record them does not matter."""
    with pytorch.no_grad(), flambeau.no_grad():
        yield


LAYERS: dict[str, Any] = {
    "LSTM": lambda T: T.nn.LSTM(5, 4),
    "two LSTMs": lambda T: T.nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True),
    "two GRUs": lambda T: T.nn.GRU(5, 4, 2),
}
CELLS: dict[str, Any] = {
    "LSTMCell": lambda T: T.nn.LSTMCell(5, 4),
    "GRUCell": lambda T: T.nn.GRUCell(5, 4),
    "RNNCell": lambda T: T.nn.RNNCell(5, 4, nonlinearity="relu"),
}


def dynamic(T: Any, make: Any, dtype: str) -> Any:
    T.manual_seed(0)
    holder = T.nn.ModuleDict({"layer": make(T)})
    return T.ao.quantization.quantize_dynamic(holder, dtype=getattr(T, dtype))["layer"]


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("name", LAYERS)
@differential
def test_dynamic_layers(T: Any, name: str, dtype: str) -> Any:
    layer = dynamic(T, LAYERS[name], dtype)
    T.manual_seed(1)
    x = T.randn(6, 6, 5)
    packed = T.nn.utils.rnn.pack_padded_sequence(
        x, [3, 6, 4, 2, 2, 1], batch_first=layer.batch_first, enforce_sorted=False
    )
    result, last = layer(packed)
    again = type(layer)(5, 4, layer.num_layers, layer.bias, layer.batch_first, 0.0, layer.bidirectional, layer.dtype)
    again.load_state_dict(layer.state_dict())
    return (
        (layer(x), layer(x, layer(x)[1]), again(x)),
        (result.data, result.batch_sizes, last),
        (repr(layer), type(layer).__name__, sorted(layer.state_dict())),
        {key: value.dequantize() for key, value in layer.get_weight().items()},
        layer.get_bias(),
        layer.get_expected_hidden_size(x, None),
        outcome(lambda: layer(T.ones(2, 3, 6)), "input.size(-1) must be equal to input_size"),
        outcome(lambda: layer.check_hidden_size(T.ones(1), (1, 2, 3)), "Expected hidden size"),
    )


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("name", CELLS)
@differential
def test_dynamic_cells(T: Any, name: str, dtype: str) -> Any:
    cell = dynamic(T, CELLS[name], dtype)
    T.manual_seed(1)
    x = T.randn(3, 5)
    first = cell(x)
    return (
        (first, cell(x, first)),
        (repr(cell), sorted(cell.get_weight()), sorted(cell.get_bias())),
        outcome(lambda: cell(T.ones(2, 6)), "inconsistent input_size"),
    )


@differential
def test_parts_of_layers(T: Any) -> Any:
    rnn = T.ao.nn.quantized.dynamic.modules.rnn
    return (
        rnn.apply_permutation(T.arange(6.0).reshape(2, 3), T.tensor([2, 0, 1])),
        rnn.PackedParameter(3).param,
        [issubclass(each, T.nn.Module) for each in (rnn.RNNBase, rnn.RNNCellBase, rnn.GRU, rnn.GRUCell)],
        outcome(lambda: rnn.LSTM.from_float(T.nn.Linear(1, 1))),
    )


def configured(T: Any, module: Any) -> Any:
    module.qconfig = T.ao.quantization.get_default_qconfig("fbgemm")
    return module.eval()


def codes(T: Any, x: Any) -> Any:
    return T.quantize_per_tensor(x, 0.06, 64, T.quint8)  # 7 bits: PyTorch's sums of more may overflow


@pytest.mark.parametrize("split", [False, True])
@differential(tolerance=0.05)
def test_layers_of_quantized_parts(T: Any, split: bool) -> Any:
    T.manual_seed(0)
    layer = T.ao.nn.quantizable.LSTM.from_float(
        configured(T, T.nn.LSTM(5, 4, 1 if split else 2, bidirectional=not split)), split_gates=split
    )
    T.manual_seed(1)  # how many numbers it takes to make a layer does not matter
    x = T.randn(3, 2, 5)
    watched = layer(x)
    quantized = T.ao.nn.quantized.LSTM.from_observed(layer)
    result, (hidden, cell) = quantized(codes(T, x))
    return (
        watched,
        (result.dequantize(), hidden.dequantize(), cell.dequantize()),
        [key for key in layer.state_dict() if "activation_post_process" not in key],
        (quantized._get_name(), layer._get_name()),
        outcome(lambda: T.ao.nn.quantized.LSTM.from_float(layer), "non-observed LSTM"),
    )


@differential
def test_cells_of_quantizable_parts(T: Any) -> Any:
    T.manual_seed(0)
    cell = T.ao.nn.quantizable.LSTMCell.from_float(configured(T, T.nn.LSTMCell(5, 4)))
    T.manual_seed(1)
    x = T.randn(3, 5)
    return cell(x), cell(x, cell(x)), cell.initialize_hidden(2), cell._get_name()


@differential(tolerance=0.05)
def test_attention_of_quantized_parts(T: Any) -> Any:
    T.manual_seed(0)
    module = configured(T, T.nn.MultiheadAttention(8, 2, add_bias_kv=True))
    watched = T.ao.nn.quantizable.MultiheadAttention.from_float(module)
    T.manual_seed(1)
    x = T.randn(6, 3, 8)
    seen = watched(x, x, x)
    mask = T.ones(6, 6).triu(1).bool()
    masked = watched(x, x, x, key_padding_mask=T.tensor([[False] * 5 + [True]] * 3), attn_mask=mask)
    quantized = T.ao.nn.quantized.MultiheadAttention.from_observed(watched)
    result, weights = quantized(codes(T, x), codes(T, x), codes(T, x))
    return (
        (seen, masked, watched(x, x, x, need_weights=False)),
        (result.dequantize(), weights.dequantize()),
        (quantized.bias_k.dequantize(), quantized._get_name()),
        outcome(lambda: T.ao.nn.quantized.MultiheadAttention.from_float(module), "non-observed MHA"),
        outcome(lambda: watched(x, x, x, is_causal=True), "causal mask not supported"),
    )


def test_attention_becomes_floats_again() -> None:
    """PyTorch's own `dequantize` gives a module with new weights, where it gives one."""
    flambeau.manual_seed(0)
    module = configured(flambeau, flambeau.nn.MultiheadAttention(8, 2))
    watched = flambeau.ao.nn.quantizable.MultiheadAttention.from_float(module)
    x = flambeau.randn(6, 3, 8)
    watched(x, x, x)
    plain = flambeau.ao.nn.quantized.MultiheadAttention.from_observed(watched).dequantize()
    assert (plain(x, x, x)[0] - module(x, x, x)[0]).abs().max() < 0.02


@differential
def test_reference_layers(T: Any) -> Any:
    T.manual_seed(0)
    reference = T.ao.nn.quantized.reference
    how = {"qscheme": T.per_tensor_affine, "dtype": T.qint8, "scale": 0.02, "zero_point": 0, "axis": 0}
    x = T.randn(6, 3, 5)
    observed: list[Any] = []
    for layer, kind in ((T.nn.LSTM(5, 4), reference.LSTM), (T.nn.GRU(5, 4), reference.GRU)):
        made = kind.from_float(layer, {"weight_ih_l0": how, "weight_hh_l0": how, "is_decomposed": False})
        weights = made.get_quantized_weight_bias_dict()
        observed += [made(x), weights["weight_ih_l0"].dequantize(), made._get_name()]
    cells = (
        (T.nn.LSTMCell(5, 4), reference.LSTMCell),
        (T.nn.GRUCell(5, 4), reference.GRUCell),
        (T.nn.RNNCell(5, 4), reference.RNNCell),
    )
    for cell, kind in cells:
        made = kind.from_float(cell, {"weight_ih": how, "weight_hh": how, "is_decomposed": False})
        quantized = made.get_quantized_weight_ih(), made.get_quantized_weight_hh()
        observed += [made(x[0]), made(x[0][0]), [each.dequantize() for each in quantized], made.get_weight_ih()]
    module = reference.modules.rnn
    observed += [module.get_quantized_weight(made, "weight_hh").dequantize(), issubclass(module.LSTM, module.RNNBase)]
    return observed
