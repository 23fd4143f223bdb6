"""Older functions of quantized weights and tensors: linear maps, recurrent cells and layers, normalisation, pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.device import CPU
from ..._core.dtype import float16, float32, int8
from ..._core.kind import kind_of_array
from ..._core.process.caller import warn_user_once
from ..._core.quantized import QINT8, per_tensor, quantize_array, quantized_tensor
from ..._core.tensor import Tensor, new_counter
from ..._dispatch.public.registry import function_named, public
from ..linalg.linear import linear as float_linear
from ..pointwise.activation import relu
from ..pointwise.unary import tanh
from ..shape.join import cat, stack
from .dispatch import about_quantized
from .layers import dynamic_layer
from .recurrent import Step, Weights, gru_step, lstm_step, over_layers, rnn_step
from .tensors import choose_parameters

_LARGEST_HALF = 65504.0


def _warn(name: str) -> None:
    warn_user_once(f"{name} is deprecated and is here for the programs that have it: see ao.nn.quantized.dynamic")


# ----- linear maps -------------------------------------------------------------------------------------------------


@public(method=False)
def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, float, int]:
    """The codes of a weight, the sum of each row less the zero points, the scale and the zero point."""
    _warn("fbgemm_linear_quantize_weight")
    array = input.detach().contiguous()._array
    scale, zero_point = choose_parameters(float(array.min()), float(array.max()), -128, 127)
    codes = quantize_array(array, per_tensor(scale, zero_point), QINT8)
    numbers = Tensor._from_parts(_parts_of(codes))
    offsets = numbers.int().sum(1) - zero_point * codes.shape[1]
    return numbers, offsets.int(), float(scale), int(zero_point)


def _parts_of(codes: Any) -> Any:
    return codes, kind_of_array(codes.dtype, CPU), new_counter()


@public(method=False)
def fbgemm_pack_quantized_matrix(input: Tensor, K: int | None = None, N: int | None = None) -> Tensor:
    """A matrix of codes for the products; here they take it as it is."""
    _warn("fbgemm_pack_quantized_matrix")
    if input.dtype is not int8:
        raise RuntimeError(f"fbgemm_pack_quantized_matrix: expected codes of int8, got {input.dtype}")
    return input.contiguous().clone()


def _linear(input: Any, weight: Any, bias: Any, scale: Any, zero_point: Any) -> Any:
    _warn("fbgemm_linear_int8_weight_fp32_activation")
    codes = quantized_tensor(weight._array, per_tensor(float(scale), int(zero_point)), QINT8)
    return dynamic_layer(float_linear, input, codes, bias, channel=-1, reduce_range=False)


@public(method=False)
def fbgemm_linear_int8_weight_fp32_activation(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: Any, weight_zero_point: Any,
    bias: Tensor,
) -> Tensor:  # fmt: skip
    """`input @ weight.T + bias` with a weight of codes; the input is rounded to codes by its own range."""
    result: Tensor = _linear(input, weight, bias, weight_scale, weight_zero_point)
    return result


@public(method=False)
def fbgemm_linear_int8_weight(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: Any, weight_zero_point: Any,
    bias: Tensor,
) -> Tensor:  # fmt: skip
    """`fbgemm_linear_int8_weight_fp32_activation` under its older name."""
    return fbgemm_linear_int8_weight_fp32_activation(
        input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
    )


@public(method=False)
def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor:
    """A weight rounded to half precision; numbers that are too large become the largest."""
    _warn("fbgemm_pack_gemm_matrix_fp16")
    return input.detach().clamp(-_LARGEST_HALF, _LARGEST_HALF).to(float16)


@public(method=False)
def fbgemm_linear_fp16_weight_fp32_activation(
    input: Tensor, packed_weight: Tensor, bias: Tensor | None, output: Tensor | None = None
) -> Tensor:
    """`input @ weight.T + bias` with a weight of half precision, in float32."""
    _warn("fbgemm_linear_fp16_weight_fp32_activation")
    result = float_linear(input, packed_weight.to(float32), bias)
    return result if output is None else output.copy_(result)


@public(method=False)
def fbgemm_linear_fp16_weight(
    input: Tensor, packed_weight: Tensor, bias: Tensor | None, output: Tensor | None = None
) -> Tensor:
    """`fbgemm_linear_fp16_weight_fp32_activation` under its older name."""
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias, output)


# ----- recurrent cells and layers ----------------------------------------------------------------------------------


def _cell(
    step: Step, input: Any, states: list[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, scales: Any, zeros: Any
) -> list[Any]:
    def own(weight: Any, bias: Any, at: int) -> Any:
        return lambda value: _linear(value, weight, bias, scales[at], zeros[at])

    weights = Weights(None, None, None, None, None, own(w_hh, b_hh, 1))
    return step(own(w_ih, b_ih, 0)(input), states, weights)


@public(method=False)
def quantized_lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor,
    packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: Any, scale_hh: Any,
    zero_point_ih: Any, zero_point_hh: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of an LSTM with weights of codes: the hidden and the cell state."""
    scales, zeros = (scale_ih, scale_hh), (zero_point_ih, zero_point_hh)
    hidden, cell = _cell(lstm_step, input, list(hx), w_ih, w_hh, b_ih, b_hh, scales, zeros)
    return hidden, cell


@public(method=False)
def quantized_gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor,
    packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: Any, scale_hh: Any,
    zero_point_ih: Any, zero_point_hh: Any,
) -> Tensor:  # fmt: skip
    """One step of a GRU with weights of codes."""
    scales, zeros = (scale_ih, scale_hh), (zero_point_ih, zero_point_hh)
    result: Tensor = _cell(gru_step, input, [hx], w_ih, w_hh, b_ih, b_hh, scales, zeros)[0]
    return result


def _publish_rnn_cell(name: str, activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The cell of a layer without gates that ends with `activation`."""

    def step(given: Any, states: list[Any], weights: Weights) -> list[Any]:
        return rnn_step(given, states, weights, activation)

    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor,
        packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: Any, scale_hh: Any,
        zero_point_ih: Any, zero_point_hh: Any,
    ) -> Tensor:  # fmt: skip
        scales, zeros = (scale_ih, scale_hh), (zero_point_ih, zero_point_hh)
        result: Tensor = _cell(step, input, [hx], w_ih, w_hh, b_ih, b_hh, scales, zeros)[0]
        return result

    cell.__name__ = cell.__qualname__ = f"quantized_rnn_{name}_cell"
    cell.__doc__ = f"One step of a layer without gates that ends with {name}, with weights of codes."
    return public(method=False)(cell)


quantized_rnn_relu_cell = _publish_rnn_cell("relu", relu)
quantized_rnn_tanh_cell = _publish_rnn_cell("tanh", tanh)


def _layers(mode: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """All layers over a batch, or over packed sequences where the second argument has the sizes of the steps."""
    packed = isinstance(args[1], Tensor) and (mode == "LSTM" or isinstance(args[2], Tensor))
    data, sizes = (args[0], args[1]) if packed else (args[0], None)
    states, params, _biases, _number, dropped, train, bidirectional, *rest = args[2 if packed else 1 :]
    batch_first = bool(rest and rest[0])
    steps = list(data.split(sizes.tolist())) if sizes is not None else list(data.unbind(1 if batch_first else 0))
    given = list(states) if mode == "LSTM" else [states]
    step = lstm_step if mode == "LSTM" else gru_step
    results, lasts = over_layers(steps, given, list(params), step, 2 if bidirectional else 1, dropped if train else 0.0)
    if sizes is not None:
        return cat(results), *lasts
    return stack(results).transpose(0, 1) if batch_first else stack(results), *lasts


@public(method=False)
def quantized_lstm(*args: Any, dtype: Any = None, use_dynamic: bool = False) -> Any:
    """`lstm` with the packed weights of `ao.nn.quantized.dynamic.LSTM`: the results, the hidden and the cell states."""
    return _layers("LSTM", args)


@public(method=False)
def quantized_gru(*args: Any) -> Any:
    """`gru` with such weights: the results and the hidden states."""
    return _layers("GRU", args)


# ----- quantized tensors -------------------------------------------------------------------------------------------


@public(method=False)
@about_quantized
def quantized_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float,
    output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    """Codes normalised by given means and variances, as codes with another scale."""
    floats = function_named("", "batch_norm")(input.dequantize(), weight, bias, mean, var, False, 0.0, eps, False)
    result: Tensor = function_named("", "quantize_per_tensor")(floats, output_scale, output_zero_point, input.dtype)
    return result


def _pooled(name: str, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    pool = function_named("nn.functional", name)
    return pool(input, kernel_size, stride or None, padding, dilation, ceil_mode)


@public(method=False)
@about_quantized
def quantized_max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """The largest code in each window."""

    def flat(value: Any, first: int) -> tuple[int, ...]:
        return (first, *value) if isinstance(value, (list, tuple)) else (first, value)

    images = input.unsqueeze(-2)
    windows = flat(kernel_size, 1), flat(stride, 1) if stride else (), flat(padding, 0), flat(dilation, 1)
    return _pooled("max_pool2d", images, *windows, ceil_mode).squeeze(-2)


@public(method=False)
@about_quantized
def quantized_max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """The largest code in each window."""
    return _pooled("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode)


@public(method=False)
@about_quantized
def quantized_max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """The largest code in each window."""
    return _pooled("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode)
