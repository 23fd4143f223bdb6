"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.arrays.quick import ZEROS
from ..._core.backend import as_array, read, undispatched
from ..._core.dtype import BOOL, COMPLEX, INTEGER, LEGACY_NAMES, bool_, finfo
from ..._core.process.processor import ON_X86_64
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import FULL, LOWER, on
from ..._dispatch.arguments.precision import in_single, no_gradient, only_where, refuse
from ..._dispatch.arguments.scalar import fitting
from ..._dispatch.axes import ELEMENTS, Along
from ..._dispatch.changes.exact_out import store_resized
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.compiled_body import pointwise, pointwise_at_any_size, pointwise_like_second
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.elementwise import SAME, unary
from ..._dispatch.elementwise_kernel import elementwise
from ..._dispatch.gradients.undifferentiable import refuse_complex_gradients
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import explain_call
from ..._dispatch.public.registry import export, public
from ..shape.view import wrap_dim
from .special_kernels import erf

_FLOATS_ONLY = (BOOL, INTEGER, COMPLEX)


def _in_place_or_new(op: Any, name: str, input: Tensor, inplace: bool, *args: Any) -> Tensor:
    return run_inplace(op, name, input, args, {}) if inplace else op(input, *args)


# ----- rectifiers --------------------------------------------------------------------------------------------------


_where = undispatched(np.where)


def _threshold_gradient(grad: Tensor, output: Tensor, threshold: Any) -> Any:
    return _threshold_backward(grad, output, threshold)


@primitive("ThresholdBackwardBackward0", self=_threshold_gradient, output=no_gradient)
@pointwise_like_second
def _threshold_backward(self: Array, output: Array, threshold: Any) -> Array:
    if type(output) is np.ndarray and output.dtype in ZEROS and threshold == 0:
        zero = ZEROS[output.dtype]
        return _where(output <= zero, zero, self)
    return np.where(output <= threshold, self.dtype.type(0), self)  # at NaN the slope is 1


def _rectified(x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype in ZEROS:
        return np.maximum(x, ZEROS[x.dtype])  # an array is what NumPy has the least work with
    return np.maximum(x, 0, dtype=x.dtype)


relu = unary(
    "relu",
    _rectified,
    refuses=(BOOL, COMPLEX),
    rule=SAME,
    derivative=lambda grad, result: _threshold_backward(grad, result, 0),
    doc="The larger of `input` and 0.",
    takes_out=False,
    complaints={
        BOOL: (RuntimeError, "Boolean inputs not supported for relu"),
        COMPLEX: (NotImplementedError, "clamp is not supported for complex types"),
    },
)


@public("nn.functional.relu", function=False, method=False, name="relu")
def _relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of `input` and 0."""
    return relu.op.change(input) if inplace else relu(input)


@primitive(
    "ThresholdBackward0", axes=ELEMENTS, self=lambda grad, self, threshold: _threshold_backward(grad, self, threshold)
)
def _threshold(self: Array, threshold: Any, value: Any) -> Array:
    # NaN is passed on.
    return np.where(self <= self.dtype.type(threshold), self.dtype.type(value), self)


@public("nn.functional.threshold", "nn.functional._threshold", function=False, method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it is above `threshold`, elsewhere `value`."""
    refuse("threshold", input, BOOL, COMPLEX)
    return _in_place_or_new(_threshold, "threshold", input, inplace, *_numbers_of(input, threshold, value))


@public(method=False, out=True, name="threshold")
def _threshold_function(input: Tensor, threshold: float, value: float) -> Tensor:
    """`input` where it is above `threshold`, elsewhere `value`."""
    refuse("threshold", input, BOOL, COMPLEX)
    return _threshold(input, *_numbers_of(input, threshold, value))


def _numbers_of(input: Tensor, *numbers: Any) -> list[Any]:
    """Numbers as the elements of `input` hold them."""
    held = [
        each.item() if isinstance(each, Tensor) and not (each._array.ndim or each.requires_grad) else each
        for each in numbers
    ]
    return [fitting(each, input._kind.dtype) for each in held]


def _outside_gradient(grad: Tensor, self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    return only_where(grad, ~((self <= min_val) | (self >= max_val)))  # at NaN the slope is 1


@primitive("HardtanhBackward0", self=_outside_gradient)
@pointwise
@in_single
def _hardtanh(self: Array, min_val: Any, max_val: Any) -> Array:
    return np.minimum(np.maximum(self, self.dtype.type(min_val)), self.dtype.type(max_val))


def _check_hardtanh(input: Tensor, min_val: float) -> None:
    if input.dtype is bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if min_val < 0 and not input.dtype.is_signed:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@public("nn.functional.hardtanh", function=False, method=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` clamped to [min_val, max_val]; the gradient at the bounds is 0."""
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: {min_val} > {max_val}")
    _check_hardtanh(input, min_val)
    return _in_place_or_new(_hardtanh, "hardtanh", input, inplace, min_val, max_val)


@public("nn.functional.relu6", function=False, method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` clamped to [0, 6]."""
    _check_hardtanh(input, 0)
    return _in_place_or_new(_hardtanh, "relu6", input, inplace, 0, 6)


def _leaky_relu_gradient(grad: Tensor, input: Tensor, negative_slope: float) -> Any:
    return _leaky_relu_backward(grad, input, negative_slope)


@primitive("LeakyReluBackwardBackward0", self=_leaky_relu_gradient, input=no_gradient)
@pointwise_like_second
@in_single
def _leaky_relu_backward(self: Array, input: Array, negative_slope: float) -> Array:
    return np.where(input > 0, self, self * negative_slope)


@primitive(
    "LeakyReluBackward0", self=lambda grad, self, negative_slope: _leaky_relu_backward(grad, self, negative_slope)
)
@pointwise_at_any_size
@in_single
def _leaky_relu(self: Array, negative_slope: float) -> Array:
    return np.where(self > 0, self, self * negative_slope)


@public("nn.functional.leaky_relu", function=False, method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where it is positive, elsewhere `negative_slope * input`."""
    refuse("leaky_relu", input, *_FLOATS_ONLY)
    slope: Any = negative_slope
    if isinstance(slope, Tensor):  # a number: its type does not decide on that of the result
        slope = slope.item()
    return _in_place_or_new(_leaky_relu, "leaky_relu", input, inplace, slope)


@primitive(
    "RreluWithNoiseBackward0", self=lambda grad, self, negative_slope: _leaky_relu_backward(grad, self, negative_slope)
)
@pointwise
@in_single
def _rrelu_mean(self: Array, lower: float, upper: float, negative_slope: float) -> Array:
    return np.where(self > 0, self, self * negative_slope)


@primitive("RreluWithNoiseBackward0", self=lambda grad, noise: grad * noise)
@pointwise
@in_single
def _rrelu_noise(self: Array, noise: Array) -> Array:
    return self * noise


@public("nn.functional.rrelu", function=False, method=False)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    generator: Any = None,
) -> Tensor:
    """Leaky relu whose slope is drawn between the bounds for each negative element; in evaluation it is their mean."""
    refuse("rrelu_with_noise", input, *_FLOATS_ONLY)
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound: {lower} > {upper}")
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if not training:
        return _in_place_or_new(_rrelu_mean, "rrelu", input, inplace, lower, upper, (lower + upper) / 2)
    noise = _slopes(input, lower, upper, generator)
    return _in_place_or_new(_rrelu_noise, "rrelu", input, inplace, noise)


def _slopes(input: Tensor, lower: float, upper: float, generator: Any) -> Tensor:
    """A slope for each element: 1 for the positive ones, one draw for each of the others."""
    return _rrelu_slopes(input.detach(), lower, upper, generator)


@primitive(None, draws=True, shape=lambda self, lower, upper, generator: np.empty_like(self, order="C"))
def _rrelu_slopes(self: Array, lower: float, upper: float, generator: Any) -> Array:
    from ..._core.generator import default_generator
    from ..._core.random.sampling import fill_uniform

    generator = generator or default_generator
    drawn = np.empty(int(read(np.count_nonzero(self <= 0))), np.float64, like=self)
    if (
        ON_X86_64 or REPRODUCIBILITY.machine
    ):  # PyTorch's file is compiled for the oldest of them: the product is rounded before the sum
        fill_uniform(drawn, generator)
        drawn = drawn * (upper - lower) + lower
    else:
        fill_uniform(drawn, generator, lower, upper)
    slopes = np.ones(self.shape, self.dtype, like=self)
    slopes[self <= 0] = drawn.astype(slopes.dtype)
    return slopes


@primitive(
    "PreluKernelBackward0",
    self=lambda grad, self, weight: only_where(grad, self > 0) + only_where(grad * weight, ~(self > 0)),
    weight=lambda grad, self: only_where(grad * self, ~(self > 0)),
)
@pointwise
@in_single
def _prelu(self: Array, weight: Array) -> Array:
    return np.where(self > 0, self, weight * self)


@public("nn.functional.prelu", autocast=LOWER)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, elsewhere `weight * input`, with one weight for all or for each channel."""
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {LEGACY_NAMES[input.dtype]} and {LEGACY_NAMES[weight.dtype]}"
        )
    if weight.numel() != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.dim() >= 2 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    spread = weight
    if input.dim() >= 2:
        spread = spread.reshape([-1 if position == 1 else 1 for position in range(input.dim())])
    elif input.dim() == 0:
        spread = spread.reshape(())
    return _prelu(input, spread)


# ----- exponential units -------------------------------------------------------------------------------------------


def _elu_curvature(grad: Tensor, self: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    # At zero the slope is that of the curve, its own derivative zero.
    return only_where(_elu_backward(grad * self, input, alpha, scale, input_scale) * input_scale, ~(input >= 0))


def _elu_gradient(grad: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Any:
    return _elu_backward(grad, input, alpha, scale, input_scale)


@primitive("EluBackwardBackward0", self=_elu_gradient, input=_elu_curvature)
@pointwise
@in_single
def _elu_backward(self: Array, input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    slope = np.exp(input * input_scale) * (alpha * scale * input_scale)
    return np.where(input <= 0, self * slope, self * scale)  # a NaN is not on the curve


@primitive(
    "EluBackward0",
    self=lambda grad, self, alpha, scale, input_scale: _elu_backward(grad, self, alpha, scale, input_scale),
)
@pointwise_at_any_size
@in_single
def _elu(self: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(self <= 0, np.expm1(self * input_scale) * (alpha * scale), self * scale)


@primitive("CeluBackward0", self=lambda grad, self, alpha: _elu_backward(grad, self, alpha, 1.0, 1.0 / alpha))
@pointwise_at_any_size
@in_single
def _celu(self: Array, alpha: float) -> Array:
    return np.where(self <= 0, np.expm1(self * (1.0 / alpha)) * alpha, self)


def elu_with_scales(input: Tensor, inplace: bool, alpha: float, scale: float, input_scale: float) -> Tensor:
    """`elu` with a factor of the result, `scale`, and one of the exponent, `input_scale`."""
    refuse("elu", input, *_FLOATS_ONLY)
    return _in_place_or_new(_elu, "elu", input, inplace, alpha, scale, input_scale)


@public("nn.functional.elu", function=False, method=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, elsewhere `alpha * (exp(input) - 1)`."""
    return elu_with_scales(input, inplace, alpha, 1.0, 1.0)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@public("nn.functional.selu", function=False, method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising exponential unit."""
    refuse("elu", input, *_FLOATS_ONLY)
    return _in_place_or_new(_elu, "selu", input, inplace, _SELU_ALPHA, _SELU_SCALE, 1.0)


@public("nn.functional.celu", function=False, method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, elsewhere `alpha * (exp(input / alpha) - 1)`."""
    refuse("elu", input, *_FLOATS_ONLY)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _in_place_or_new(_celu, "celu", input, inplace, alpha)


# Outside `nn.functional` these have no `inplace`.


@public(method=False, name="rrelu")
def _rrelu_function(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """Leaky relu whose slope is drawn between the bounds for each negative element; in evaluation it is their mean."""
    return rrelu(input, lower, upper, training, False, generator)


@public(method=False, name="selu")
def _selu_function(input: Tensor) -> Tensor:
    """The self-normalising exponential unit."""
    return selu(input)


@public(method=False, name="celu")
def _celu_function(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`input` where it is positive, elsewhere `alpha * (exp(input / alpha) - 1)`."""
    return celu(input, alpha)


# ----- smooth gates ------------------------------------------------------------------------------------------------

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_DENSITY = math.sqrt(0.5 / math.pi)  # of the normal distribution, at its mean
_CUBIC = 0.044715


def _gelu_curvature(grad: Tensor, self: Tensor, input: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        density = (input * input * -0.5).exp() * _DENSITY
        return grad * self * (2 - input * input) * density
    square = input * input
    inner = (_SQRT_TWO_OVER_PI * (input + _CUBIC * square * input)).tanh()
    slope = _SQRT_TWO_OVER_PI * (1 + 3 * _CUBIC * square)
    bend = 6 * _SQRT_TWO_OVER_PI * _CUBIC * input
    return grad * self * (1 - inner * inner) * (slope + 0.5 * input * (bend - 2 * inner * slope * slope))


def _gelu_gradient(grad: Tensor, input: Tensor, approximate: str) -> Any:
    return _gelu_backward(grad, input, approximate)


@primitive(
    "GeluBackwardBackward0", self=_gelu_gradient, input=_gelu_curvature, shape=lambda self, input, approximate: self * 1
)
@pointwise_at_any_size
@in_single
def _gelu_backward(self: Array, input: Array, approximate: str) -> Array:
    if approximate == "none":
        area = (erf(as_array(input * _SQRT_HALF)) + 1) * 0.5
        return self * (area + input * (np.exp(input * input * -0.5) * _DENSITY))
    square = input * input
    inner = np.tanh(_SQRT_TWO_OVER_PI * (input + _CUBIC * square * input))
    slope = _SQRT_TWO_OVER_PI * (1 + 3 * _CUBIC * square)
    return self * (0.5 * (1 + inner) + 0.5 * input * (1 - inner * inner) * slope)


@primitive(
    "GeluBackward0",
    self=lambda grad, self, approximate: _gelu_backward(grad, self, approximate),
    shape=lambda self, approximate: self * 1,
)
@pointwise_at_any_size
@in_single
def _gelu(self: Array, approximate: str) -> Array:
    half = self * 0.5
    if approximate == "none":
        return half * (1 + erf(as_array(self * _SQRT_HALF)))
    return half * (1 + np.tanh(_SQRT_TWO_OVER_PI * (self + _CUBIC * self * self * self)))


@public("nn.functional.gelu", function=False, method=False, out=True)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`input` times the area under the normal density up to it; approximate="tanh" is a cheaper curve."""
    refuse("GeluKernelImpl", input, *_FLOATS_ONLY)
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, not {approximate!r}.")
    return _gelu(input, approximate)


def _silu_gradient(grad: Tensor, self: Tensor) -> Tensor:
    gate = self.sigmoid()
    slope = gate * (1 + self * (1 - gate))
    return grad * (slope.conj() if self.dtype.is_complex else slope)


@primitive("SiluBackward0", self=_silu_gradient)
@pointwise_at_any_size
@in_single
def _silu(self: Array) -> Array:
    return self / (1 + np.exp(-self))


@public("nn.functional.silu", function=False, method=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`."""
    refuse("silu", input, BOOL, INTEGER)
    refuse_complex_gradients("silu", input)
    return _in_place_or_new(_silu, "silu", input, inplace)


def _log1p_exp(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _mish_gradient(grad: Tensor, self: Tensor) -> Any:
    gate = softplus(self, 1.0, 20.0).tanh()
    return grad * (gate + self * self.sigmoid() * (1 - gate * gate))


@primitive("MishBackward0", self=_mish_gradient)
@pointwise_at_any_size
@in_single
def _mish(self: Array) -> Array:
    return self * np.tanh(_log1p_exp(self))


@public("nn.functional.mish", function=False, method=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`."""
    refuse("mish", input, *_FLOATS_ONLY)
    return _in_place_or_new(_mish, "mish", input, inplace)


def _softplus_gradient(grad: Tensor, self: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = self * beta
    straight = scaled > threshold
    return only_where(grad * scaled.sigmoid(), ~straight) + only_where(grad, straight)


@elementwise(
    "nn.functional.softplus",
    refuses=_FLOATS_ONLY,
    at_any_size=True,
    function=False,
    method=False,
    inplace=False,
    autocast=on(cuda=FULL),
    self=_softplus_gradient,
)
def softplus(self: Array, beta: float = 1, threshold: float = 20) -> Array:
    """`log(1 + exp(beta * input)) / beta`, and `input` itself where `beta * input` exceeds the threshold."""
    scaled = self * beta
    return np.where(scaled > threshold, self, _log1p_exp(scaled) / beta).astype(self.dtype, copy=False)


@primitive("LogSigmoidBackward0", self=lambda grad, self: grad * (-self).sigmoid())
@pointwise_at_any_size
@in_single
def _log_sigmoid(self: Array) -> Array:
    return np.minimum(self, 0) - np.log1p(np.exp(-np.abs(self)))


@public("nn.functional.logsigmoid", function=False, method=False, out=store_resized)
def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of `sigmoid(input)`."""
    refuse("log_sigmoid", input, *_FLOATS_ONLY)
    return _log_sigmoid(input)


def _halves(array: Array, dim: int) -> tuple[Array, Array]:
    half, before = array.shape[dim] // 2, (slice(None),) * dim
    return array[(*before, slice(half))], array[(*before, slice(half, None))]


@pointwise
def _gated(value: Array, gate: Array) -> Array:
    return value / (1 + np.exp(-gate))


@pointwise
def _slope_of_gate(grad: Array, value: Array, gate: Array) -> Array:
    open_ = 1 / (1 + np.exp(-gate))
    return grad * value * open_ * (1 - open_)


def _glu_backward_on_arrays(grad: Array, self: Array, dim: int) -> Array | None:
    if type(grad) is not np.ndarray or grad.dtype.itemsize == 2:
        return None
    value, gate = _halves(self, dim)
    result = np.empty(self.shape, self.dtype)
    of_value, of_gate = _halves(result, dim)
    of_value[...] = _gated(grad, gate)
    of_gate[...] = _slope_of_gate(grad, value, gate)
    return result


@composite("glu_backward", kernel=_glu_backward_on_arrays)
def _glu_backward(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    from ..shape.join import cat

    value, gate = self.chunk(2, dim)
    open_ = gate.sigmoid()
    return cat([grad * open_, grad * value * open_ * (1 - open_)], dim)


@primitive("GluBackward0", axes=Along("dim"), self=lambda grad, self, dim: _glu_backward(grad, self, dim))
@in_single
def _glu(self: Array, dim: int) -> Array:
    return _gated(*_halves(self, dim))


@public("nn.functional.glu", function=False, method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("glu does not support scalars because halving size must be even: the input has 0 dimensions")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {shape[dim]}")
    refuse("glu", input, *_FLOATS_ONLY)
    return _glu(input, dim)


# ----- piecewise linear and simple ---------------------------------------------------------------------------------


@public("nn.functional.softsign", function=False, method=False)
def softsign(input: Tensor) -> Tensor:
    """`input / (1 + |input|)`."""
    return input / (input.abs() + 1)


@public("nn.functional.tanhshrink", function=False, method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`."""
    return input - input.tanh()


_SIXTH = float(np.float32(1 / 6))  # the slope that PyTorch takes in every precision


@primitive("HardsigmoidBackward0", self=lambda grad, self: only_where(grad * _SIXTH, (self > -3) & (self < 3)))
@pointwise_at_any_size
@in_single
def _hardsigmoid(self: Array) -> Array:
    return np.minimum(np.maximum(self + 3, 0), 6) / self.dtype.type(6)


@public("nn.functional.hardsigmoid", function=False, method=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A line from 0 at -3 to 1 at 3, constant outside."""
    refuse("hardsigmoid", input, *_FLOATS_ONLY)
    return _in_place_or_new(_hardsigmoid, "hardsigmoid", input, inplace)


def _hardswish_gradient(grad: Tensor, input: Tensor) -> Any:
    return _hardswish_backward(grad, input)


@primitive(
    "HardswishBackwardBackward0",
    self=_hardswish_gradient,
    input=lambda grad, self, input: only_where(grad * self / 3, (input > -3) & (input < 3)),
)
@pointwise_at_any_size
@in_single
def _hardswish_backward(self: Array, input: Array) -> Array:
    slope = np.where(input >= 3, self, self * (input / 3 + 0.5))
    return np.where(input <= -3, self.dtype.type(0), slope)


@primitive("HardswishBackward0", self=lambda grad, self: _hardswish_backward(grad, self))
@pointwise_at_any_size
@in_single
def _hardswish(self: Array) -> Array:
    return self * np.minimum(np.maximum(self + 3, 0), 6) / self.dtype.type(6)


@public("nn.functional.hardswish", function=False, method=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`."""
    refuse("hardswish", input, *_FLOATS_ONLY)
    return _in_place_or_new(_hardswish, "hardswish", input, inplace)


def _shrink_gradient(grad: Tensor, self: Tensor, lambd: float) -> Tensor:
    return only_where(grad, ~((self >= -lambd) & (self <= lambd)))


@primitive("HardshrinkBackward0", axes=ELEMENTS, self=_shrink_gradient)
def _hardshrink(self: Array, lambd: float) -> Array:
    return np.where((self >= -lambd) & (self <= lambd), self.dtype.type(0), self)


@public("nn.functional.hardshrink", out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 within [-lambd, lambd], elsewhere `input`."""
    refuse("hardshrink", input, *_FLOATS_ONLY)
    return _hardshrink(input, lambd)


@primitive("SoftshrinkBackward0", self=_shrink_gradient)
@pointwise_at_any_size
@in_single
def _softshrink(self: Array, lambd: float) -> Array:
    return np.where(self > lambd, self - lambd, np.where(self < -lambd, self + lambd, self * 0))


@public("nn.functional.softshrink", function=False, method=False, out=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input` moved towards 0 by `lambd`."""
    refuse("softshrink", input, *_FLOATS_ONLY)
    if not 0 <= lambd <= 65504:  # what every dtype can hold
        most = finfo(input.dtype).max
        if not 0 <= lambd <= most:
            name = LEGACY_NAMES[input.dtype]
            raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype {name}, but found {lambd:g}")
    return _softshrink(input, lambd)


def _changing(op: Any, name: str) -> Any:
    own = op.__code__.co_varnames[1 : op.__code__.co_argcount]
    words = [word for word in own if word != "inplace"]
    first = own.index("inplace") if "inplace" in own else len(own)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(input) not in DIRECT_TYPES and has_override((input,)):
            return run_override(function, (input,), (input, *args), kwargs)
        if len(args) > len(words) or "inplace" in kwargs:
            raise TypeError(f"{name}_() takes other arguments: {', '.join(('input', *words))}")
        if len(args) > first:
            args, kwargs = args[:first], kwargs | dict(zip(words[first:], args[first:], strict=False))
        try:
            return run_inplace(op, name, input, args, kwargs)
        except Exception as error:
            explain_call(error, f"{name}_", op, (input, *args), kwargs)
            raise

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"In-place form of `{name}`."
    return function


def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """In-place form of `elu`: `scale` is a factor of the result, `input_scale` one of the exponent."""
    return elu_with_scales(input, True, alpha, scale, input_scale)


export(elu_, "nn.functional.elu_")
for _op in (celu, hardtanh, leaky_relu, rrelu, selu, threshold):
    _name = _op.__name__
    _top_level = (f"{_name}_",) if _name in ("celu", "rrelu", "selu", "threshold") else ()
    export(_changing(_op, _name), f"nn.functional.{_name}_", *_top_level)
export(_changing(relu, "relu"), "nn.functional.relu_")
