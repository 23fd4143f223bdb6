"""Recurrent layers whose sums and products are modules, so that each can be watched and quantized by itself."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules.rnn import check_dropout

from ...._constructors import shown_as
from ...quantized.modules.functional_modules import FloatFunctional

__all__ = ["LSTM", "LSTMCell"]


class LSTMCell(nn.Module):
    """One step of an LSTM: four gates from two linear layers, and the new state from products of gates."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.input_size = input_dim
        self.hidden_size = hidden_dim
        self.bias = bias
        self.split_gates = split_gates
        names = ("input", "forget", "cell", "output")
        if split_gates:
            self.igates: Any = nn.ModuleDict(
                {each: nn.Linear(input_dim, hidden_dim, bias, **options) for each in names}
            )
            self.hgates: Any = nn.ModuleDict(
                {each: nn.Linear(hidden_dim, hidden_dim, bias, **options) for each in names}
            )
            self.gates: Any = nn.ModuleDict({each: FloatFunctional() for each in names})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias, **options)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias, **options)
            self.gates = FloatFunctional()
        self.input_gate = nn.Sigmoid()
        self.forget_gate = nn.Sigmoid()
        self.cell_gate = nn.Tanh()
        self.output_gate = nn.Sigmoid()
        self.fgate_cx = FloatFunctional()
        self.igate_cgate = FloatFunctional()
        self.fgate_cx_igate_cgate = FloatFunctional()
        self.ogate_cy = FloatFunctional()
        # The range of the state is known where it is quantized; by default it is watched as any result.
        self.initial_hidden_state_qparams = (1.0, 0)
        self.initial_cell_state_qparams = (1.0, 0)
        self.hidden_state_dtype: Any = torch.quint8
        self.cell_state_dtype: Any = torch.quint8

    def _gates(self, x: Any, hidden: Any) -> list[Any]:
        if self.split_gates:
            return [self.gates[each].add(self.igates[each](x), self.hgates[each](hidden)) for each in self.gates]
        return list(torch.split(self.gates.add(self.igates(x), self.hgates(hidden)), self.hidden_size, dim=1))

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The new hidden state and the new cell state."""
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        h_x, c_x = hidden
        given, forgotten, offered, shown = self._gates(x, h_x)
        kept = self.fgate_cx.mul(self.forget_gate(forgotten), c_x)
        added = self.igate_cgate.mul(self.input_gate(given), self.cell_gate(offered))
        c_y = self.fgate_cx_igate_cgate.add(kept, added)
        return self.ogate_cy.mul(self.output_gate(shown), torch.tanh(c_y)), c_y

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> Any:
        """The hidden and cell states before the first step: zeros."""
        states = torch.zeros(batch_size, self.hidden_size), torch.zeros(batch_size, self.hidden_size)
        if not is_quantized:
            return states
        (h_scale, h_zero), (c_scale, c_zero) = self.initial_hidden_state_qparams, self.initial_cell_state_qparams
        return (
            torch.quantize_per_tensor(states[0], h_scale, h_zero, self.hidden_state_dtype),
            torch.quantize_per_tensor(states[1], c_scale, c_zero, self.cell_state_dtype),
        )

    _get_name = shown_as("Quantizable{}")

    @classmethod
    def from_params(cls, wi: Any, wh: Any, bi: Any = None, bh: Any = None, split_gates: bool = False) -> LSTMCell:
        """A cell with given weights and biases."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        made = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for gates, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layers = list(gates.values()) if split_gates else [gates]
            weights = weight.chunk(4, 0) if split_gates else [weight]
            biases = [None] * len(layers) if bias is None else bias.chunk(4, 0) if split_gates else [bias]
            for layer, own_weight, own_bias in zip(layers, weights, biases, strict=True):
                layer.weight = nn.Parameter(own_weight.detach())
                if own_bias is not None:
                    layer.bias = nn.Parameter(own_bias.detach())
        return made

    @classmethod
    def from_float(cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False) -> LSTMCell:
        """A cell with the parameters of an ordinary one."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"from_float expects a {cls._FLOAT_MODULE.__name__}, not a {type(other).__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        biases = (other.bias_ih, other.bias_hh) if other.bias else (None, None)
        made = cls.from_params(other.weight_ih, other.weight_hh, *biases, split_gates=split_gates)
        made.qconfig = other.qconfig
        for each in (made.igates, made.hgates):
            each.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """A cell over all steps."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias, device, dtype, split_gates=split_gates)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The hidden state of each step, and the last states."""
        results = []
        for each in x.unbind(0):
            hidden = self.cell(each, hidden)
            results.append(hidden[0])
        return torch.stack(results, 0), hidden


class _LSTMLayer(nn.Module):
    """A layer in one direction or in both."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, batch_first: bool = False,
        bidirectional: bool = False, device: Any = None, dtype: Any = None, *, split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_first = batch_first
        self.bidirectional = bidirectional
        options = (input_dim, hidden_dim, bias, device, dtype)
        self.layer_fw = _LSTMSingleLayer(*options, split_gates=split_gates)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(*options, split_gates=split_gates)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The hidden states of each step, side by side, and the last ones."""
        if self.batch_first:
            x = x.transpose(0, 1)
        forward, backward = (None, None) if hidden is None else _of_directions(hidden, self.bidirectional)
        result, last = self.layer_fw(x, forward)
        if self.bidirectional:
            reversed_result, reversed_last = self.layer_bw(x.flip(0), backward)
            result = torch.cat([result, reversed_result.flip(0)], result.dim() - 1)
            last = tuple(torch.stack(list(pair), 0) for pair in zip(last, reversed_last, strict=True))
        return result.transpose_(0, 1) if self.batch_first else result, last

    @classmethod
    def from_float(cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **kwargs: Any) -> _LSTMLayer:
        """The layer with this number of an ordinary LSTM."""
        if not (hasattr(other, "qconfig") or qconfig is not None):
            raise AssertionError("The float module must have 'qconfig', or one must be given")
        input_size = kwargs.get("input_size", other.input_size)
        options = {name: kwargs.get(name, getattr(other, name)) for name in ("bias", "batch_first", "bidirectional")}
        split_gates = kwargs.get("split_gates", False)
        layer = cls(input_size, kwargs.get("hidden_size", other.hidden_size), **options, split_gates=split_gates)
        layer.qconfig = getattr(other, "qconfig", qconfig)
        for name, suffix in (("layer_fw", ""), ("layer_bw", "_reverse"))[: 2 if options["bidirectional"] else 1]:
            weights = [getattr(other, f"weight_{each}_l{layer_idx}{suffix}") for each in ("ih", "hh")]
            biases = [getattr(other, f"bias_{each}_l{layer_idx}{suffix}", None) for each in ("ih", "hh")]
            getattr(layer, name).cell = LSTMCell.from_params(
                weights[0], weights[1], biases[0], biases[1], split_gates=split_gates
            )
        return layer


def _of_directions(hidden: Any, bidirectional: bool) -> Any:
    """The states of the two directions, where each state has one row for each."""
    if not bidirectional:
        return tuple(each.squeeze(0) if each.dim() == 3 else each for each in hidden), None
    return tuple(tuple(each[at] for each in hidden) for at in (0, 1))


class LSTM(nn.Module):
    """`nn.LSTM` of parts that can be quantized."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = check_dropout(dropout)
        self.bidirectional = bidirectional
        self.training = False
        if dropout > 0:
            import warnings

            warnings.warn("dropout option for quantizable LSTM is ignored", UserWarning, stacklevel=2)
        widths = [input_size] + [hidden_size * (2 if bidirectional else 1)] * (num_layers - 1)
        self.layers = nn.ModuleList(
            _LSTMLayer(each, hidden_size, bias, False, bidirectional, device, dtype, split_gates=split_gates)
            for each in widths
        )

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The hidden states of the last layer at each step, and the last states of all layers."""
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 2 if self.bidirectional else 1
        if hidden is None:
            zeros = torch.zeros(directions, x.size(1), self.hidden_size, device=x.device)
            zeros = torch.quantize_per_tensor(zeros, 1.0, 0, x.dtype) if x.is_quantized else zeros.to(x.dtype)
            given: list[Any] = [(zeros, zeros)] * self.num_layers
        elif isinstance(hidden[0], torch.Tensor):
            shape = (self.num_layers, directions, hidden[0].shape[-2], hidden[0].shape[-1])
            given = list(zip(*(each.reshape(shape).unbind(0) for each in hidden), strict=True))
        else:
            given = list(hidden)
        lasts = []
        for layer, state in zip(self.layers, given, strict=True):
            x, last = layer(x, state)
            lasts.append(last)
        shape = (-1, *lasts[0][0].shape[-2:])
        states = tuple(torch.stack([each[at] for each in lasts]).reshape(shape) for at in (0, 1))
        return x.transpose(0, 1) if self.batch_first else x, states

    _get_name = shown_as("Quantizable{}")

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """A quantizable LSTM with the layers of an ordinary one."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"from_float expects a {cls._FLOAT_MODULE.__name__}, not a {type(other).__name__}")
        if not (hasattr(other, "qconfig") or qconfig is not None):
            raise AssertionError("The float module must have 'qconfig', or one must be given")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for index in range(other.num_layers):
            made.layers[index] = _LSTMLayer.from_float(
                other, index, qconfig, batch_first=False, split_gates=split_gates,
                input_size=made.layers[index].layer_fw.cell.input_size,
            )  # fmt: skip
        if other.training:
            made.train()
            observed: LSTM = torch.ao.quantization.prepare_qat(made, inplace=True)
            return observed
        made.eval()
        watched: LSTM = torch.ao.quantization.prepare(made, inplace=True)
        return watched

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """An error: `ao.nn.quantized.LSTM` is made of watched ones."""
        raise NotImplementedError("Converting a non-quantizable LSTM is not possible: use ao.nn.quantized.LSTM")
