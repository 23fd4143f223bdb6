"""Layers and functions whose own source is no TorchScript: what is written for them. These are read, not run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as torch
import flambeau.nn.functional as F

from ... import nn
from ..._core.tensor import Tensor
from ...nn.modules.batchnorm import _BatchNorm
from ...nn.modules.conv import _ConvTransposeNd
from ...nn.modules.instancenorm import _InstanceNorm
from ...nn.modules.pooling import _LPPoolNd
from .stand_ins_of_attention import OF_ATTENTION


def _sequential(self: Any, input: Tensor) -> Any:
    for each in self._modules.values():
        input = each(input)
    return input


def _batch_norm(self: Any, input: Tensor) -> Any:
    factor = 0.0 if self.momentum is None else self.momentum
    if self.training and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            factor = 1.0 / float(self.num_batches_tracked)
    return F.batch_norm(
        input, self.running_mean, self.running_var, self.weight, self.bias,
        self.training or self.running_mean is None, factor, self.eps,
    )  # fmt: skip


def _instance_norm(self: Any, input: Tensor) -> Any:
    return F.instance_norm(
        input, self.running_mean, self.running_var, self.weight, self.bias,
        self.training or not self.track_running_stats, self.momentum, self.eps,
    )  # fmt: skip


def _transposed_convolution(self: Any, input: Tensor) -> Any:
    return getattr(F, self._function)(
        input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
    )


_MEANS = {"lp_pool1d": ("avg_pool1d", 1), "lp_pool2d": ("avg_pool2d", 2), "lp_pool3d": ("avg_pool3d", 3)}


def _power_pool(self: Any, input: Tensor) -> Any:
    means = getattr(F, _MEANS[self._function][0])(
        input.pow(float(self.norm_type)), self.kernel_size, self.stride, 0, self.ceil_mode
    )
    return (
        means
        * float(
            math.prod(
                (self.kernel_size,) * _MEANS[self._function][1]
                if isinstance(self.kernel_size, int)
                else self.kernel_size
            )
        )
    ).pow(1.0 / self.norm_type)


def _lstm(self: Any, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
    if hx is None:
        batch = input.size(0 if self.batch_first else 1)
        count = self.num_layers * (2 if self.bidirectional else 1)
        state = torch.zeros(count, batch, self.proj_size or self.hidden_size, dtype=input.dtype, device=input.device)
        cell = torch.zeros(count, batch, self.hidden_size, dtype=input.dtype, device=input.device)
        states = [state, cell]
    else:
        states = [hx[0], hx[1]]
    output, last, cells = torch.lstm(
        input, states, self._flat_weights, self.bias, self.num_layers, float(self.dropout), self.training,
        self.bidirectional, self.batch_first,
    )  # fmt: skip
    return output, (last, cells)


_FUNCTIONS = {"GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _recurrent(self: Any, input: Tensor, hx: Tensor | None = None) -> Any:
    if hx is None:
        batch = input.size(0 if self.batch_first else 1)
        count = self.num_layers * (2 if self.bidirectional else 1)
        state = torch.zeros(count, batch, self.hidden_size, dtype=input.dtype, device=input.device)
    else:
        state = hx
    output, last = getattr(torch, _FUNCTIONS[self.mode])(
        input, state, self._flat_weights, self.bias, self.num_layers, float(self.dropout), self.training,
        self.bidirectional, self.batch_first,
    )  # fmt: skip
    return output, last


def _lstm_cell(self: Any, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
    if hx is None:
        zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        states = [zeros, zeros]
    else:
        states = [hx[0], hx[1]]
    last, cell = torch.lstm_cell(input, states, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return last, cell


_CELLS = {"GRUCell": "gru_cell", "tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell"}


def _cell(self: Any, input: Tensor, hx: Tensor | None = None) -> Any:
    if hx is None:
        state = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
    else:
        state = hx
    return getattr(torch, _CELLS[getattr(self, "nonlinearity", "GRUCell")])(
        input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
    )


def _normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return input / input.norm(p, [dim], True).clamp_min(eps).expand_as(input)


def _local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    squares = input.square().transpose(1, -1)
    means = F.pad(squares, [size // 2, (size - 1) // 2]).unfold(-1, size, 1).mean(-1)
    return input / (means.transpose(1, -1) * alpha + k) ** beta


def _softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def _tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def _square_mask(sz: int) -> Tensor:
    return torch.full([sz, sz], float("-inf")).triu(1)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    F.normalize: _normalize,
    F.local_response_norm: _local_response_norm,
    F.softsign: _softsign,
    F.tanhshrink: _tanhshrink,
    nn.Transformer.generate_square_subsequent_mask: _square_mask,
}
"""What is written for functions that are no operators."""

_STAND_INS: dict[type, Callable[..., Any]] = {
    **OF_ATTENTION,
    nn.Sequential: _sequential,
    _BatchNorm: _batch_norm,
    _InstanceNorm: _instance_norm,
    _ConvTransposeNd: _transposed_convolution,
    _LPPoolNd: _power_pool,
    nn.LSTM: _lstm,
    nn.GRU: _recurrent,
    nn.RNN: _recurrent,
    nn.LSTMCell: _lstm_cell,
    nn.GRUCell: _cell,
    nn.RNNCell: _cell,
}


def stand_in(module: nn.Module) -> Callable[..., Any] | None:
    """What is written for the `forward` of a layer; None: that itself."""
    for cls in type(module).__mro__:
        if "forward" in vars(cls):
            found = next((_STAND_INS[each] for each in type(module).__mro__ if each in _STAND_INS), None)
            return found if cls.__module__.startswith(nn.__name__) else None
    return None
