"""Functions of quantized tensors under the names of `torch.ops.quantized`: what a quantized graph calls.

A layer's weight and bias come as one object, `PackedWeight`, which the functions called `..._prepack` make.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flambeau as torch

from .._ops.quantized.layers import dynamic_convolution, dynamic_layer, quantized_layer
from ..nn import functional as F


@dataclasses.dataclass
class PackedWeight:
    """A weight and a bias with the options of their layer."""

    weight: Any
    bias: Any = None
    options: tuple[Any, ...] = ()

    def unpack(self) -> tuple[Any, Any]:
        """The weight and the bias."""
        return self.weight, self.bias


def _finish(numbers: Any, like: Any, scale: Any, zero_point: Any, relu: bool = False) -> Any:
    numbers = numbers.clamp(min=0) if relu else numbers
    return torch.quantize_per_tensor(numbers, float(scale), int(zero_point), like.dtype)


def _shifted(x: Any, y: float) -> Any:
    """`x + y` with a number, which moves the zero point."""
    scale, zero_point = x.q_scale(), x.q_zero_point()
    low, high = (0, 255) if x.dtype is torch.quint8 else (-128, 127)
    moved = zero_point - round(y / scale)
    if low <= moved <= high:
        return torch._make_per_tensor_quantized_tensor(x.int_repr(), scale, moved)
    end = low if moved < low else high
    wider = (high - low + (low - moved if moved < low else moved - high)) / (high - low)
    return _finish(x.dequantize() + y, x, scale * wider, end)


def _stretched(x: Any, y: float) -> Any:
    """`x * y` with a number, which changes the scale."""
    if y > 0:
        return torch._make_per_tensor_quantized_tensor(x.int_repr(), x.q_scale() * y, x.q_zero_point())
    low, high = (0, 255) if x.dtype is torch.quint8 else (-128, 127)
    if y == 0:
        return _finish(x.dequantize() * 0, x, 1.0, 0)
    return _finish(x.dequantize() * y, x, abs(y) * x.q_scale(), high - (x.q_zero_point() - low))


def _rectified(x: Any) -> Any:
    return torch.relu(x)


def _publish(name: str, function: Callable[..., Any], text: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    globals()[name] = function


def _product(qa: Any, b: Any, scale: Any = None, zero_point: Any = None, relu: bool = False) -> Any:
    """Codes are multiplied exactly, and scaled with one rounding."""
    if not isinstance(b, torch.Tensor):
        return _rectified(_stretched(qa, b)) if relu else _stretched(qa, b)
    centred = [each.int_repr().to(torch.int32) - each.q_zero_point() for each in (qa, b)]
    factor = qa.q_scale() * b.q_scale() * (1.0 / float(scale))
    own_zero_point = int(zero_point)
    low, high = (0, 255) if qa.dtype is torch.quint8 else (-128, 127)
    codes = torch.round((centred[0] * centred[1]).float() * factor) + own_zero_point
    codes = codes.clamp(own_zero_point if relu else low, high).to(qa.int_repr().dtype)
    return torch._make_per_tensor_quantized_tensor(codes, float(scale), own_zero_point)


def mul(qa: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Any:
    """The product of two tensors of codes, or of one and a number."""
    return _product(qa, b, scale, zero_point)


def mul_relu(qa: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Any:
    """The product of codes without negative numbers."""
    return _product(qa, b, scale, zero_point, relu=True)


def _sum(qa: Any, b: Any, scale: Any, zero_point: Any, relu: bool) -> Any:
    if isinstance(b, torch.Tensor):
        return _finish(qa.dequantize() + b.dequantize(), qa, scale, zero_point, relu)
    return _rectified(_shifted(qa, b)) if relu else _shifted(qa, b)


def add(qa: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Any:
    """The sum of two tensors of codes, or of one and a number."""
    return _sum(qa, b, scale, zero_point, relu=False)


def add_relu(qa: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Any:
    """The sum of codes without negative numbers."""
    return _sum(qa, b, scale, zero_point, relu=True)


def _into(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a place for its result, whose scale and zero point count."""

    def write(*args: Any) -> Any:
        *given, out = args
        return out.copy_(function(*given, out.q_scale(), out.q_zero_point()))

    return write


def _as_number(b: Any) -> Any:
    return b.item() if isinstance(b, torch.Tensor) else b


def _of_a_number(name: str, compute: Callable[..., Any]) -> None:
    """The sums or products of codes and a number, with and without a rectifier, and with a place for the result."""
    kind = "sum" if name == "add" else "product"
    for relu in (False, True):
        own, further = (f"{name}_scalar_relu", " without negative numbers") if relu else (f"{name}_scalar", "")

        def function(qa: Any, b: Any, relu: bool = relu) -> Any:
            return _rectified(compute(qa, _as_number(b))) if relu else compute(qa, _as_number(b))

        def write(qa: Any, b: Any, out: Any, function: Any = function) -> Any:
            return out.copy_(function(qa, b))

        _publish(own, function, f"The {kind} of codes and a number{further}.")
        _publish(f"{own}_out", write, f"The {kind} of codes and a number{further}, into `out`.")


_of_a_number("add", _shifted)
_of_a_number("mul", _stretched)
for _name in ("add", "add_relu", "mul", "mul_relu"):
    _publish(f"{_name}_out", _into(globals()[_name]), f"`{_name}` into `out`, quantized as that is.")


def matmul(qa: Any, qb: Any, scale: Any, zero_point: Any) -> Any:
    """The product of two matrices of codes, or of stacks of them."""
    return _finish(torch.matmul(qa.dequantize(), qb.dequantize()), qa, scale, zero_point)


def cat(qx: Any, dim: int, scale: Any = None, zero_point: Any = None) -> Any:
    """Tensors of codes end to end; the scale is that of the first where none is given."""
    return _joined(qx, dim, scale, zero_point)


def cat_relu(qx: Any, dim: int, scale: Any = None, zero_point: Any = None) -> Any:
    """Tensors of codes end to end, without negative numbers."""
    return _joined(qx, dim, scale, zero_point, relu=True)


def _joined(tensors: Any, dim: int, scale: Any, zero_point: Any, relu: bool = False) -> Any:
    first = tensors[0]
    scale = first.q_scale() if scale is None else scale
    zero_point = first.q_zero_point() if zero_point is None else zero_point
    return _finish(torch.cat([each.dequantize() for each in tensors], dim), first, scale, zero_point, relu)


for _name in ("cat", "cat_relu"):
    _publish(f"{_name}_out", _into(globals()[_name]), f"`{_name}` into `out`, quantized as that is.")


# ----- activations and norms: a scale of the result ------------------------------------------------------------------


def hardswish(input: Any, output_scale: Any, output_zero_point: Any) -> Any:
    """`nn.functional.hardswish` of a quantized tensor."""
    return _finish(F.hardswish(input.dequantize()), input, output_scale, output_zero_point)


def elu(self: Any, output_scale: Any, output_zero_point: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:  # noqa: E501  # fmt: skip
    """`nn.functional.elu` of a quantized tensor."""
    return _finish(F.elu(self.dequantize(), alpha), self, output_scale, output_zero_point)


def celu(self: Any, output_scale: Any, output_zero_point: Any, alpha: Any = 1) -> Any:
    """`nn.functional.celu` of a quantized tensor."""
    return _finish(F.celu(self.dequantize(), alpha), self, output_scale, output_zero_point)


def leaky_relu(qx: Any, negative_slope: Any, inplace: bool, output_scale: Any, output_zero_point: Any) -> Any:
    """`nn.functional.leaky_relu` of a quantized tensor."""
    return _finish(F.leaky_relu(qx.dequantize(), negative_slope), qx, output_scale, output_zero_point)


def sigmoid(qx: Any, output_scale: Any, output_zero_point: Any) -> Any:
    """`torch.sigmoid` of a quantized tensor."""
    return _finish(torch.sigmoid(qx.dequantize()), qx, output_scale, output_zero_point)


def softmax(qx: Any, dim: int, output_scale: Any, output_zero_point: Any) -> Any:
    """`nn.functional.softmax` of a quantized tensor."""
    return _finish(F.softmax(qx.dequantize(), dim), qx, output_scale, output_zero_point)


def prelu(qx: Any, weight: Any, output_scale: Any, output_zero_point: Any) -> Any:
    """`nn.functional.prelu` of codes, by a weight of a quantized tensor."""
    return _finish(F.prelu(qx.dequantize(), weight.dequantize()), qx, output_scale, output_zero_point)


def relu6(qx: Any, inplace: bool = False) -> Any:
    """`nn.functional.relu6` of a quantized tensor."""
    return F.relu6(qx, inplace)


def threshold(qx: Any, threshold: Any, value: Any) -> Any:
    """`nn.functional.threshold` of a quantized tensor."""
    return F.threshold(qx, threshold, value)


def clamp(qx: Any, min: Any = None, max: Any = None) -> Any:
    """`torch.clamp` of a quantized tensor."""
    return torch.clamp(qx, min, max)


def max_pool1d(qx: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """`nn.functional.max_pool1d` of a quantized tensor."""
    return torch.quantized_max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(qx: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """`nn.functional.max_pool2d` of a quantized tensor."""
    return torch.quantized_max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)


def dropout(self: Any, output_scale: Any, output_zero_point: Any, p: float = 0.5, training: bool = False) -> Any:
    """`nn.functional.dropout` of a quantized tensor."""
    return F.dropout(self, p, training)


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, output_scale: Any, output_zero_point: Any
) -> Any:
    """`nn.functional.layer_norm` of a quantized tensor."""
    numbers = F.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return _finish(numbers, input, output_scale, output_zero_point)


def group_norm(
    qx: Any, num_groups: int, weight: Any, bias: Any, eps: float, output_scale: Any, output_zero_point: Any
) -> Any:
    """`nn.functional.group_norm` of a quantized tensor."""
    numbers = F.group_norm(qx.dequantize(), num_groups, weight, bias, eps)
    return _finish(numbers, qx, output_scale, output_zero_point)


def instance_norm(input: Any, weight: Any, bias: Any, eps: float, output_scale: Any, output_zero_point: Any) -> Any:
    """`nn.functional.instance_norm` of codes, by their own statistics."""
    numbers = F.instance_norm(input.dequantize(), weight=weight, bias=bias, eps=eps)
    return _finish(numbers, input, output_scale, output_zero_point)


def _batch_norm(relu: bool) -> Callable[..., Any]:
    def function(
        qx: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, output_scale: Any, output_zero_point: Any
    ) -> Any:
        numbers = F.batch_norm(qx.dequantize(), mean, var, weight, bias, False, 0.0, eps)
        return _finish(numbers, qx, output_scale, output_zero_point, relu)

    return function


for _dimensions in ("", "1d", "2d", "3d"):
    _publish(
        f"batch_norm{_dimensions}", _batch_norm(False), "`nn.functional.batch_norm` of codes, by given statistics."
    )
    _publish(f"batch_norm{_dimensions}_relu", _batch_norm(True), "Batch norm of codes, and no negative numbers.")


# ----- linear maps ---------------------------------------------------------------------------------------------------


def linear_prepack(W: Any, B: Any = None) -> PackedWeight:
    """A quantized weight and a bias."""
    return PackedWeight(W, None if B is None else B.detach().float())


def linear_prepack_fp16(W: Any, B: Any = None) -> PackedWeight:
    """A weight that is rounded to 16 bits, and a bias."""
    return PackedWeight(W.detach().half().float(), B)


def linear_unpack(W_prepack: PackedWeight) -> tuple[Any, Any]:
    """The weight and the bias."""
    return W_prepack.unpack()


def linear(X: Any, W_prepack: PackedWeight, Y_scale_i: Any, Y_zero_point_i: Any) -> Any:
    """`nn.functional.linear` of a quantized tensor."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, relu=False)


def linear_relu(X: Any, W_prepack: PackedWeight, Y_scale_i: Any, Y_zero_point_i: Any) -> Any:
    """A linear layer of codes, and no negative numbers."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, relu=True)


def _linear(X: Any, packed: PackedWeight, scale: Any, zero_point: Any, relu: bool) -> Any:
    own = (float(scale), int(zero_point))
    return quantized_layer(F.linear, X, packed.weight, packed.bias, *own, channel=-1, relu=relu)


def linear_dynamic(X: Any, W_prepack: PackedWeight, reduce_range: bool = False) -> Any:
    """A linear layer of floats, which are quantized by their own range."""
    return dynamic_layer(F.linear, X, W_prepack.weight, W_prepack.bias, channel=-1, reduce_range=reduce_range)


def linear_relu_dynamic(X: Any, W_prepack: PackedWeight, reduce_range: bool = False) -> Any:
    """A linear layer of floats that are quantized by their own range, and no negative numbers."""
    weight, bias = W_prepack.unpack()
    return dynamic_layer(F.linear, X, weight, bias, channel=-1, relu=True, reduce_range=reduce_range)


def linear_dynamic_fp16(X: Any, W_prepack: PackedWeight) -> Any:
    """A linear map of floats with a weight of 16 bits."""
    return F.linear(X, *W_prepack.unpack())


def linear_relu_dynamic_fp16(X: Any, W_prepack: PackedWeight) -> Any:
    """A linear layer of floats with a weight of float16, and no negative numbers."""
    return F.relu(linear_dynamic_fp16(X, W_prepack))


# ----- convolutions --------------------------------------------------------------------------------------------------


_OPTIONS = ("stride", "padding", "dilation", "groups")


def _convolution(number: int, transposed: bool) -> None:
    """The functions of convolutions in so many dimensions: packing, running, and running with a rectifier."""
    name = f"conv_transpose{number}d" if transposed else f"conv{number}d"
    run = getattr(F, name)

    def prepack(weight: Any, bias: Any, stride: Any, padding: Any, *further: Any) -> PackedWeight:
        if transposed:  # here the options stand as in PyTorch's schema, dilation before groups
            output_padding, dilation, groups = further
            further = (output_padding, groups, dilation)
        return PackedWeight(weight, None if bias is None else bias.detach().float(), (stride, padding, *further))

    def convolve(relu: bool) -> Callable[..., Any]:
        def function(qx: Any, packed_weight: PackedWeight, output_scale: Any, output_zero_point: Any) -> Any:
            weight, bias = packed_weight.unpack()
            return quantized_layer(
                lambda x, w: run(x, w, None, *packed_weight.options), qx, weight, bias,
                float(output_scale), int(output_zero_point), channel=1, relu=relu,
            )  # fmt: skip

        return function

    def dynamic(qx: Any, packed_weight: PackedWeight, reduce_range: bool = False) -> Any:
        weight, bias = packed_weight.unpack()
        return dynamic_convolution(
            lambda x, w: run(x, w, None, *packed_weight.options), qx, weight, bias,
            relu=False, reduce_range=reduce_range,
        )  # fmt: skip

    def option(position: int) -> Callable[[PackedWeight], Any]:
        return lambda packed_weights: packed_weights.options[position]

    _publish(f"{name}_prepack", prepack, "A quantized weight, a bias and the options of a convolution.")
    _publish(name, convolve(False), f"`nn.functional.{name}` of codes.")
    _publish(f"{name}_dynamic", dynamic, f"`nn.functional.{name}` of floats, which are quantized by their own range.")
    _publish(f"{name}_unpack", PackedWeight.unpack, "The weight and the bias of a convolution.")
    if not transposed:
        _publish(f"{name}_relu", convolve(True), "The same, and no negative numbers.")
    if number == 1:
        return
    options = ("stride", "padding", "output_padding", "groups", "dilation") if transposed else _OPTIONS
    for position, each in enumerate(options):
        _publish(f"{name}_{each}", option(position), f"The {each.replace('_', ' ')} of a convolution.")
    _publish(f"{name}_transpose", lambda packed_weights: int(transposed), "1 for a transposed convolution, else 0.")


for _number in (1, 2, 3):
    _convolution(_number, transposed=False)
    _convolution(_number, transposed=True)
