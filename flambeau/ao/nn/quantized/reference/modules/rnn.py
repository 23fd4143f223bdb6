"""Recurrent layers and cells that compute with floats as quantized ones will."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules import rnn

from ....._constructors import shown_as

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase", "get_quantized_weight"]

_DEFAULT = {"qscheme": torch.per_tensor_affine, "dtype": torch.quint8, "scale": 1.0, "zero_point": 0, "axis": 0}


def get_quantized_weight(module: Any, wn: str) -> Any:
    """The codes of one of the weights of a module, as the module says that it is quantized."""
    weight = getattr(module, wn)
    scheme, element = getattr(module, f"{wn}_qscheme"), getattr(module, f"{wn}_dtype")
    scale: Any = getattr(module, f"{wn}_scale", None)
    zero_point: Any = getattr(module, f"{wn}_zero_point", None)
    if scheme in (None, torch.per_tensor_symmetric, torch.per_tensor_affine):
        return weight if scheme is None else torch.quantize_per_tensor(weight, scale, zero_point, element)
    return torch.quantize_per_channel(weight, scale, zero_point, int(getattr(module, f"{wn}_axis")), element)


def _rounded(module: Any, wn: str) -> Any:
    """The floats that the codes of a weight stand for."""
    element = getattr(module, f"{wn}_dtype")
    if getattr(module, f"{wn}_qscheme") is None:
        return getattr(module, wn).to(element).float() if element is torch.float16 else getattr(module, wn)
    return get_quantized_weight(module, wn).dequantize()


class _Quantizable:
    """What layers and cells share: how each weight is quantized."""

    def _init_weight_qparams_dict(self, weight_qparams_dict: Any, device: Any = None) -> None:
        own: Any = self
        for name, qparams in weight_qparams_dict.items():
            if name == "is_decomposed":
                continue
            setattr(own, f"{name}_qscheme", qparams["qscheme"])
            setattr(own, f"{name}_dtype", qparams["dtype"])
            if qparams["qscheme"] is not None:
                for part in ("scale", "zero_point"):
                    value = torch.as_tensor(qparams[part], device=device).detach().clone()
                    own.register_buffer(f"{name}_{part}", value)
                setattr(own, f"{name}_axis", qparams.get("axis", 0))

    def get_quantized_weight(self, wn: str) -> Any:
        """The codes of one of the weights."""
        return get_quantized_weight(self, wn)

    def get_weight(self, wn: str) -> Any:
        """The floats that the codes of one of the weights stand for."""
        return _rounded(self, wn)


class RNNCellBase(_Quantizable, rnn.RNNCellBase):
    """What the cells share."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks, device=device, dtype=dtype)
        given = weight_qparams_dict or {"weight_ih": _DEFAULT, "weight_hh": _DEFAULT, "is_decomposed": False}
        self._init_weight_qparams_dict(given, device)

    _get_name = shown_as("Quantized{}(Reference)")

    def get_weight_ih(self) -> Any:
        """The weight of the input, as rounded."""
        return self.get_weight("weight_ih")

    def get_weight_hh(self) -> Any:
        """The weight of the state, as rounded."""
        return self.get_weight("weight_hh")

    def get_quantized_weight_ih(self) -> Any:
        """The codes of the weight of the input."""
        return get_quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Any:
        """The codes of the weight of the state."""
        return get_quantized_weight(self, "weight_hh")

    def _take(self, mod: Any) -> Any:
        """The parameters of an ordinary cell."""
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(self, name, getattr(mod, name))
        return self

    def _step(self, function: Any, input: Any, hx: Any) -> Any:
        """One step, of a batch or of a single row."""
        self_states = hx if isinstance(hx, tuple) else (hx,)
        if input.dim() not in (1, 2):
            raise AssertionError(f"{type(self).__name__}: Expected input to be 1-D or 2-D but received {input.dim()}-D")
        alone = input.dim() == 1
        rows = input.unsqueeze(0) if alone else input
        zeros = torch.zeros(rows.size(0), self.hidden_size, dtype=rows.dtype, device=rows.device)
        states = [zeros if each is None else each.unsqueeze(0) if alone else each for each in self_states]
        given = tuple(states) if isinstance(hx, tuple) else states[0]
        result = function(rows, given, self.get_weight_ih(), self.get_weight_hh(), self.bias_ih, self.bias_hh)
        if not alone:
            return result
        return tuple(each.squeeze(0) for each in result) if isinstance(result, tuple) else result.squeeze(0)


class RNNCell(RNNCellBase):
    """`nn.RNNCell` with weights that are rounded at each use."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None, weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype, weight_qparams_dict)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(torch.rnn_tanh_cell if self.nonlinearity == "tanh" else torch.rnn_relu_cell, input, hx)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """A reference cell with the parameters of an ordinary one."""
        made = cls(
            mod.input_size, mod.hidden_size, mod.bias, mod.nonlinearity, mod.weight_ih.device, mod.weight_ih.dtype,
            weight_qparams_dict,
        )  # fmt: skip
        return made._take(mod)


class LSTMCell(RNNCellBase):
    """`nn.LSTMCell` with weights that are rounded at each use."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype, weight_qparams_dict)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state and the new cell state."""
        return self._step(torch.lstm_cell, input, (None, None) if hx is None else tuple(hx))

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A reference cell with the parameters of an ordinary one."""
        device, dtype = mod.weight_ih.device, mod.weight_ih.dtype
        return cls(mod.input_size, mod.hidden_size, mod.bias, device, dtype, weight_qparams_dict)._take(mod)


class GRUCell(RNNCellBase):
    """`nn.GRUCell` with weights that are rounded at each use."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype, weight_qparams_dict)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new hidden state."""
        return self._step(torch.gru_cell, input, hx)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """A reference cell with the parameters of an ordinary one."""
        device, dtype = mod.weight_ih.device, mod.weight_ih.dtype
        return cls(mod.input_size, mod.hidden_size, mod.bias, device, dtype, weight_qparams_dict)._take(mod)


class RNNBase(_Quantizable, nn.RNNBase):
    """What the layers share."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None, weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        nn.RNNBase.__init__(
            self, mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype,
        )  # fmt: skip
        names = [name for name in self._flat_weights_names if name.startswith("weight")]
        given = weight_qparams_dict or {**dict.fromkeys(names, _DEFAULT), "is_decomposed": False}
        self._init_weight_qparams_dict(given, device)

    @property
    def _flat_weights(self) -> list[Any]:
        """What the networks take: see `get_flat_weights`."""
        return self.get_flat_weights()

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            setattr(self, name, weight)

    def get_flat_weights(self) -> list[Any]:
        """All parameters, the weights as rounded."""
        return [
            self.get_weight(name) if name.startswith("weight") else getattr(self, name)
            for name in self._flat_weights_names
        ]

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The codes of the weights, and the biases, by name."""
        return {
            name: get_quantized_weight(self, name) if name.startswith("weight") else getattr(self, name)
            for name in self._flat_weights_names
        }

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """A reference layer with the parameters of an ordinary one."""
        made: Any = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            weight_qparams_dict=weight_qparams_dict,
        )  # fmt: skip
        for name in mod._flat_weights_names:
            setattr(made, name, getattr(mod, name))
        return made


class LSTM(RNNBase, nn.LSTM):
    """`nn.LSTM` with weights that are rounded at each use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        RNNBase.__init__(self, "LSTM", *args, **kwargs)

    _get_name = shown_as("Quantized{}(Reference)")


class GRU(RNNBase, nn.GRU):
    """`nn.GRU` with weights that are rounded at each use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        RNNBase.__init__(self, "GRU", *args, **kwargs)

    _get_name = shown_as("Quantized{}(Reference)")
