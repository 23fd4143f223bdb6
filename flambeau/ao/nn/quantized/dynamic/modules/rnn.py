"""Recurrent layers and cells with quantized weights, for floats that are quantized as they come."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules.rnn import check_dropout
from flambeau.nn.utils.rnn import PackedSequence

from ......_ops.quantized.recurrent import GATES, Weights, gru_step, linear, lstm_step, over_layers, rnn_step
from ....._constructors import shown_as
from ...modules.utils import quantize_weight

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "PackedParameter",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "apply_permutation",
    "pack_weight_bias",
]  # fmt: skip

_FLOAT_LAYER: Any = nn.RNNBase
_FLOAT_LSTM: Any = nn.LSTM
_FLOAT_CELL: Any = nn.RNNCellBase


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """The slices of a tensor along `dim` in another order."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


def pack_weight_bias(qweight: Any, bias: Any, dtype: Any) -> Any:
    """A weight and its bias as one thing; a weight of `float16` is rounded to it."""
    return (qweight.half().float() if dtype is torch.float16 else qweight), bias


def _chosen_weight(weight: Any, observer: Any) -> Any:
    """A weight as its observer says: codes, or rounded to half precision."""
    if observer.dtype is torch.float16:
        return weight.detach().half().float()
    observer(weight)
    return quantize_weight(weight.detach().float(), observer)


def _observer_of(mod: Any) -> Any:
    if getattr(mod, "qconfig", None) is not None and mod.qconfig.weight is not None:
        make = mod.qconfig.weight
    else:
        make = torch.ao.quantization.qconfig.default_dynamic_qconfig.weight
    if make().dtype not in (torch.qint8, torch.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {make().dtype}")
    return make


class PackedParameter(nn.Module):
    """The weights of one direction of one layer, which a state dict has as one thing."""

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, *further)


class RNNBase(nn.Module):
    """What the layers share: as many weights as there are layers and directions."""

    _FLOAT_MODULE: Any = nn.RNNBase
    _step: Any
    """What gives the new states from what the input has made of itself, the old states and the weights."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, dtype: Any = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError(f"Unsupported dtype: {dtype}")
        if mode not in ("LSTM", "GRU"):
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = check_dropout(dropout)
        self.bidirectional = bidirectional
        self.dtype = dtype
        self.version = 2
        self.training = False
        rows = GATES[mode] * hidden_size
        packed = []
        for layer, _suffix in self._places():
            width = input_size if layer == 0 else hidden_size * self._directions
            weights = [torch.randn(rows, width), torch.randn(rows, hidden_size)]
            if dtype is torch.qint8:
                weights = [torch.quantize_per_tensor(each, 0.1, 0, torch.qint8) for each in weights]
            biases = [torch.randn(rows) for _ in range(2)] if bias else [None, None]
            packed.append(PackedParameter(Weights(weights[0], weights[1], biases[0], biases[1], dtype)))
        self._all_weight_values = nn.ModuleList(packed)

    # What does not look at weights is the float layer's.
    proj_size = 0
    _directions = _FLOAT_LAYER._directions
    _batch = _FLOAT_LAYER._batch
    get_expected_hidden_size = _FLOAT_LAYER.get_expected_hidden_size
    check_hidden_size = _FLOAT_LAYER.check_hidden_size
    check_forward_args = _FLOAT_LAYER.check_forward_args
    permute_hidden = _FLOAT_LAYER.permute_hidden
    extra_repr = _FLOAT_LAYER.extra_repr

    def _places(self) -> list[tuple[int, str]]:
        """The number of the layer and the suffix of the direction of each set of weights."""
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in ("", "_reverse")[: self._directions]]

    _get_name = shown_as("DynamicQuantizedRNN")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    # ----- checks ------------------------------------------------------------------------------------------------

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse inputs of another width."""
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    # ----- weights -----------------------------------------------------------------------------------------------

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Take over weights and biases by the names that the layer of floats has for them."""
        for packed, (layer, suffix) in zip(self._all_weight_values, self._places(), strict=True):
            weights = [weight_bias_dict[f"weight_{each}_l{layer}{suffix}"] for each in ("ih", "hh")]
            biases = [weight_bias_dict.get(f"bias_{each}_l{layer}{suffix}") for each in ("ih", "hh")]
            packed.param = Weights(weights[0], weights[1], biases[0], biases[1], self.dtype)

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        for packed, (layer, suffix) in zip(self._all_weight_values, self._places(), strict=True):
            for at, each in enumerate(("ih", "hh")):
                found["weight"][f"weight_{each}_l{layer}{suffix}"] = packed.param[at]
                if self.bias:
                    found["bias"][f"bias_{each}_l{layer}{suffix}"] = packed.param[2 + at]
        return found

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer with quantized weights for one of floats."""
        if type(mod) not in {nn.LSTM, nn.GRU}:
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.bias:
            raise AssertionError("mod.bias must be True: quantized recurrent layers have biases")
        make = _observer_of(mod)
        kind = LSTM if mod.mode == "LSTM" else GRU
        made = kind(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            make().dtype,
        )  # fmt: skip
        values = {}
        for layer, suffix in made._places():
            for each in ("ih", "hh"):
                name = f"{each}_l{layer}{suffix}"
                values[f"weight_{name}"] = _chosen_weight(getattr(mod, f"weight_{name}"), make())
                values[f"bias_{name}"] = getattr(mod, f"bias_{name}")
        made.set_weight_bias(values)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The dynamically quantized layer for one that computes with floats as codes would."""
        made = cls(
            ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias, ref_mod.batch_first,
            ref_mod.dropout, ref_mod.bidirectional,
        )  # fmt: skip
        biases = {name: each.detach() for name, each in ref_mod.named_parameters() if name.startswith("bias")}
        weights = {name: ref_mod.get_quantized_weight(name) for name in ref_mod._flat_weights_names if "weight" in name}
        made.set_weight_bias({**weights, **biases})
        return made

    # ----- computation -------------------------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The hidden states of each step, in the form of the input, and the last states."""
        packed = isinstance(input, PackedSequence)
        data, sizes = (input.data, input.batch_sizes) if packed else (input, None)
        order, back = (input.sorted_indices, input.unsorted_indices) if packed else (None, None)
        shape = self.get_expected_hidden_size(data, sizes)
        number = 2 if self.mode == "LSTM" else 1
        if hx is None:
            states = [torch.zeros(shape, dtype=data.dtype) for _ in range(number)]
        else:
            states = [self.permute_hidden(each, order) for each in (hx if number == 2 else (hx,))]
        self.check_input(data, sizes)
        for each in states:
            self.check_hidden_size(each, shape)
        if sizes is not None:
            steps = list(data.split(sizes.tolist()))
        else:
            steps = list(data.unbind(1 if self.batch_first else 0))
        weights = [each.param for each in self._all_weight_values]
        results, lasts = over_layers(
            steps, states, weights, self._step, self._directions, self.dropout if self.training else 0.0
        )
        lasts = [self.permute_hidden(each, back) for each in lasts]
        if packed:
            result: Any = PackedSequence(torch.cat(results), sizes, order, back)
        else:
            result = torch.stack(results).transpose(0, 1) if self.batch_first else torch.stack(results)
        return result, tuple(lasts) if number == 2 else lasts[0]

    def forward_tensor(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Run the layers on a tensor: the hidden states of each step, and the last ones."""
        return self.forward(input, hx)

    def forward_packed(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Run the layers on a packed sequence: the hidden states of each step, and the last ones."""
        return self.forward(input, hx)


class LSTM(RNNBase):
    """`nn.LSTM` with quantized weights."""

    _FLOAT_MODULE = nn.LSTM
    _step = staticmethod(lstm_step)
    _get_name = shown_as("DynamicQuantized{}")
    get_expected_cell_size = _FLOAT_LSTM.get_expected_cell_size
    check_forward_args = _FLOAT_LSTM.check_forward_args

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The states in another order of the batch."""
        if isinstance(hx, tuple):
            return tuple(super(LSTM, self).permute_hidden(each, permutation) for each in hx)
        return super().permute_hidden(hx, permutation)


class GRU(RNNBase):
    """`nn.GRU` with quantized weights."""

    _FLOAT_MODULE = nn.GRU
    _step = staticmethod(gru_step)
    _get_name = shown_as("DynamicQuantized{}")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(nn.Module):
    """What the cells share."""

    __constants__ = ("input_size", "hidden_size", "bias")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = torch.qint8
    ) -> None:
        super().__init__()
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError(f"Unsupported dtype: {dtype}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_dtype = dtype
        rows = num_chunks * hidden_size
        self.bias_ih: Any = torch.randn(rows) if bias else None
        self.bias_hh: Any = torch.randn(rows) if bias else None
        weights = [torch.randn(rows, input_size), torch.randn(rows, hidden_size)]
        if dtype is torch.qint8:
            weights = [torch.quantize_per_tensor(each, 0.1, 0, torch.qint8) for each in weights]
        self._packed_weight_ih = pack_weight_bias(weights[0], self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(weights[1], self.bias_hh, dtype)

    _get_name = shown_as("DynamicQuantizedRNNBase")

    extra_repr = _FLOAT_CELL.extra_repr

    def check_forward_input(self, input: Any) -> None:
        """Refuse inputs of another width."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Any, hx: Any, hidden_label: str = "") -> None:
        """Refuse states of another shape."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected {self.hidden_size}"
            )

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Take over weights and biases by their names."""
        self.bias_ih, self.bias_hh = (weight_bias_dict.get(name) for name in ("bias_ih", "bias_hh"))
        self._packed_weight_ih = pack_weight_bias(weight_bias_dict["weight_ih"], self.bias_ih, self.weight_dtype)
        self._packed_weight_hh = pack_weight_bias(weight_bias_dict["weight_hh"], self.bias_hh, self.weight_dtype)

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        weights = {"weight_ih": self._packed_weight_ih[0], "weight_hh": self._packed_weight_hh[0]}
        return {"weight": weights, "bias": {"bias_ih": self.bias_ih, "bias_hh": self.bias_hh} if self.bias else {}}

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            packed = state_dict.pop(prefix + name)
            setattr(self, name, packed)
            setattr(self, name.replace("_packed_weight", "bias"), packed[1])
        super()._load_from_state_dict(state_dict, prefix, *further)

    def _weights(self) -> Weights:
        (w_ih, b_ih), (w_hh, b_hh) = self._packed_weight_ih, self._packed_weight_hh
        return Weights(w_ih, w_hh, b_ih, b_hh, self.weight_dtype)

    def _states(self, input: Any, hx: Any, number: int) -> list[Any]:
        """The states that were given, checked, or zeros."""
        self.check_forward_input(input)
        if hx is None:
            return [torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype) for _ in range(number)]
        states = list(hx) if number == 2 else [hx]
        for at, each in enumerate(states):
            self.check_forward_hidden(input, each, f"[{at}]" if number == 2 else "")
        return states

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        if isinstance(mod, nn.RNNCell):
            return RNNCell(mod.input_size, mod.hidden_size, mod.bias, mod.nonlinearity, dtype=dtype)
        kind = LSTMCell if isinstance(mod, nn.LSTMCell) else GRUCell
        return kind(mod.input_size, mod.hidden_size, mod.bias, dtype=dtype)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The cell with quantized weights for one of floats."""
        if type(mod) not in {nn.LSTMCell, nn.GRUCell, nn.RNNCell}:
            raise AssertionError("from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        make = _observer_of(mod)
        made = cls._like(mod, make().dtype)
        values = {f"weight_{each}": _chosen_weight(getattr(mod, f"weight_{each}"), make()) for each in ("ih", "hh")}
        if mod.bias:
            values |= {f"bias_{each}": getattr(mod, f"bias_{each}").detach() for each in ("ih", "hh")}
        made.set_weight_bias(values)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The dynamically quantized cell for one that computes with floats as codes would."""
        made = cls._like(ref_mod, ref_mod.weight_ih_dtype)
        values = {f"weight_{each}": ref_mod.get_quantized_weight(f"weight_{each}") for each in ("ih", "hh")}
        if ref_mod.bias:
            values |= {f"bias_{each}": getattr(ref_mod, f"bias_{each}").detach() for each in ("ih", "hh")}
        made.set_weight_bias(values)
        return made


class RNNCell(RNNCellBase):
    """`nn.RNNCell` with quantized weights."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = torch.qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    _get_name = shown_as("DynamicQuantized{}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        weights, states = self._weights(), self._states(input, hx, 1)
        given = linear(input, weights.w_ih, weights.b_ih)
        return rnn_step(given, states, weights, torch.tanh if self.nonlinearity == "tanh" else torch.relu)[0]


class LSTMCell(RNNCellBase):
    """`nn.LSTMCell` with quantized weights."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, dtype=dtype)

    _get_name = shown_as("DynamicQuantized{}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state and the new cell state."""
        weights, states = self._weights(), self._states(input, hx, 2)
        return tuple(lstm_step(linear(input, weights.w_ih, weights.b_ih), states, weights))


class GRUCell(RNNCellBase):
    """`nn.GRUCell` with quantized weights."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    _get_name = shown_as("DynamicQuantized{}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state."""
        weights, states = self._weights(), self._states(input, hx, 1)
        return gru_step(linear(input, weights.w_ih, weights.b_ih), states, weights)[0]
