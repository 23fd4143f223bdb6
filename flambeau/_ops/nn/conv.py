"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.abstract import empty_meta
from ..._core.backend import LARGE
from ..._core.dtype import COMPLEX, LEGACY_NAMES
from ..._core.geometry.moving_windows import (
    Geometry,
    Shape,
    correlated_sizes,
    extent,
    gives_channels_last,
    new_array,
    strides_for,
    transposed_sizes,
)
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import LOWER, on
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.public.registry import public
from ..shape.view import reshaped
from .conv_checks import (
    check_dtypes,
    check_numbers,
    check_operands,
    check_ranks,
    check_shapes,
    check_sizes,
    for_each_dim,
    integers,
)
from .conv_kernels import correlate, correlate_transposed, weight_gradient


class _OfShapes(Primitive[..., Tensor]):
    """A primitive that works out on the meta device what it would give, and computes nothing."""

    def _run_indirectly(self, arrays: list[Any], place: Any) -> Any:
        if place.dataless:
            return self.kernel(*arrays, compute=False)
        return super()._run_indirectly(arrays, place)


def _empty(shape: Shape, array_type: Any, last: bool = False) -> Any:
    item = array_type.itemsize
    return empty_meta(shape, array_type, tuple([step * item for step in strides_for(shape, last)]))


# ----- the convolution and its derivatives --------------------------------------------------------------------------


@functools.lru_cache(maxsize=512)
def _plan(
    input: Shape,
    weight: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> tuple[Geometry, Shape]:
    """How the kernel moves, and the shape of the result. Networks repeat their shapes."""
    geometry = Geometry(stride, padding, dilation, groups)
    if transposed:
        channels, sizes = weight[1] * groups, transposed_sizes(input[2:], weight[2:], geometry, output_padding)
    else:
        channels, sizes = weight[0], correlated_sizes(input[2:], weight[2:], geometry)
    return geometry, (input[0], channels if input[1] else 0, *sizes)  # PyTorch gives no channels for none


def _input_gradient(
    grad_output: Any, weight: Any, shape: Shape, geometry: Geometry, transposed: bool, last: bool
) -> Any:
    if not grad_output.size:
        return np.zeros(shape, grad_output.dtype)
    return (correlate if transposed else correlate_transposed)(grad_output, weight, None, shape[2:], geometry, last)


def _weight_gradient(
    grad_output: Any, input: Any, shape: Shape, geometry: Geometry, transposed: bool, last: bool
) -> Any:
    if not grad_output.size:
        return np.zeros(shape, grad_output.dtype)
    if transposed:
        return weight_gradient(grad_output, input, shape[2:], geometry, last)
    return weight_gradient(input, grad_output, shape[2:], geometry, last)


@in_single
def _bias_gradient(grad_output: Any) -> Any:
    if REPRODUCIBILITY.total is not None and type(grad_output) is np.ndarray:
        return REPRODUCIBILITY.total(grad_output, (0, *range(2, grad_output.ndim)), False)
    if grad_output.size >= LARGE:
        rows = arrays.reduced("add", grad_output, tuple(range(2, grad_output.ndim)), grad_output.dtype)
        if rows is not None:
            return np.add.reduce(rows)
    return np.add.reduce(grad_output, axis=(0, *range(2, grad_output.ndim)))


def _convolution_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    weight: Any,
    bias_sym_sizes_opt: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> list[Any]:
    if grads[0] is None:
        return [None, None, None]
    of_input, of_weight, of_bias = _convolution_backward(
        grads[0], input, weight, stride, padding, dilation, transposed, output_padding, groups, needed
    )
    if needed[2] and of_bias._array.shape != bias_sym_sizes_opt:  # no channel came out, of inputs that have none
        of_bias = grads[0].new_zeros(bias_sym_sizes_opt)
    return [of_input if needed[0] else None, of_weight if needed[1] else None, of_bias if needed[2] else None]


def _convolution_kernel(
    input: Array,
    weight: Array,
    bias: Array | None,
    bias_sym_sizes_opt: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
    *,
    compute: bool = True,
) -> Array:
    geometry, shape = _plan(input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    last = gives_channels_last(input, weight)
    if not compute:
        return _empty(shape, input.dtype, last)
    if not shape[1]:
        return np.empty(shape, input.dtype)
    return (correlate_transposed if transposed else correlate)(input, weight, bias, shape[2:], geometry, last)


def _second_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    grad_output: Any,
    input: Any,
    weight: Any,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
    output_mask: tuple[bool, ...],
) -> list[Any]:
    # Of what was not asked for there are empty results; forward mode differentiates by these too.
    of_input, of_weight, of_bias = (each if asked else None for each, asked in zip(grads, output_mask, strict=True))
    options = (stride, padding, dilation, transposed, output_padding, groups)
    result: list[Any] = [None, None, None]
    if needed[0]:
        parts = []
        if of_input is not None:
            parts.append(_convolution(of_input, weight, None, (0,), *options))
        if of_weight is not None:
            parts.append(_convolution(input, of_weight, None, (0,), *options))
        if of_bias is not None:
            parts.append(reshaped(of_bias, (1, -1, *[1] * (grad_output.dim() - 2))).expand(grad_output.shape))
        result[0] = sum(parts[1:], parts[0]) if parts else None
    if needed[1] and of_weight is not None:
        result[1] = _convolution_backward(grad_output, input, of_weight, *options, (True, False, False))[0]
    if needed[2] and of_input is not None:
        result[2] = _convolution_backward(grad_output, of_input, weight, *options, (False, True, False))[1]
    return result


def _convolution_backward_kernel(
    grad_output: Array,
    input: Array,
    weight: Array,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
    output_mask: tuple[bool, bool, bool],
    *,
    compute: bool = True,
) -> tuple[Array, Array, Array]:
    """The gradients of input, weight and bias; an empty array for each that `output_mask` does not ask for."""
    geometry = Geometry(stride, padding, dilation, groups)
    last = gives_channels_last(input, weight)
    array_type = grad_output.dtype
    of_input = of_weight = of_bias = np.empty(0, array_type, like=grad_output)
    if not compute:
        of_bias = _empty((0,), array_type)
        shapes = (input.shape, weight.shape, (grad_output.shape[1],))
        made = [_empty(shape, array_type, last and len(shape) > 1) for shape in shapes]
        of_input, of_weight, of_bias = (
            each if wanted else of_bias for each, wanted in zip(made, output_mask, strict=True)
        )
        return of_input, of_weight, of_bias
    if output_mask[0]:
        of_input = _input_gradient(grad_output, weight, input.shape, geometry, transposed, last)
    if output_mask[1]:
        of_weight = _weight_gradient(grad_output, input, weight.shape, geometry, transposed, last)
    if output_mask[2]:
        of_bias = _bias_gradient(grad_output)
    return of_input, of_weight, of_bias


_convolution = _OfShapes(_convolution_kernel, "ConvolutionBackward0", {}, _convolution_gradients, False)
_convolution_backward = _OfShapes(
    _convolution_backward_kernel, "ConvolutionBackwardBackward0", {}, _second_gradients, False
)


def _sizes_of(bias: Tensor | None) -> Shape:
    """What a node keeps of the bias."""
    return (0,) if bias is None else bias._array.shape


def _complex_convolution(input: Any, weight: Any, bias: Any, options: tuple[Any, ...]) -> Tensor:
    """Three convolutions of real tensors: (a + bi)(c + di) has the imaginary part (a + b)(c + d) - ac - bd."""

    def convolve(first: Any, second: Any, third: Any) -> Tensor:
        return _convolution(first, second, third, _sizes_of(third), *options)

    real = convolve(input.real, weight.real, None if bias is None else bias.real)
    imag = convolve(input.imag, weight.imag, None)
    both_bias = None if bias is None else bias.real + bias.imag
    both = convolve(input.real + input.imag, weight.real + weight.imag, both_bias)
    return (real - imag) + 1j * (both - real - imag)


# ----- batches, samples, paddings with a name ------------------------------------------------------------------------


@functools.lru_cache(maxsize=512)
def _checked_options(
    input: Shape,
    weight: Shape,
    bias: Shape | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> tuple[Any, ...]:
    """The options with a number for each dimension, if they and the shapes go together. Networks repeat their shapes:
    these are checked once.
    """
    rank = len(weight) - 2
    if rank < 1:
        raise RuntimeError(f"weight should have at least three dimensions, but got size {list(weight)}")
    geometry = Geometry(
        for_each_dim("stride", stride, rank),
        for_each_dim("padding", padding, rank),
        for_each_dim("dilation", dilation, rank),
        groups,
    )
    output_padding = for_each_dim("output_padding", output_padding, rank)
    check_numbers(geometry, output_padding)
    check_shapes(input, weight, bias, geometry, transposed)
    if rank > 3:
        raise RuntimeError(f"unsupported ConvNd parameters: {rank} spatial dimensions, of at most 3")
    check_sizes(input, weight, geometry, transposed, output_padding)
    return (*geometry[:3], transposed, output_padding, groups)


def _run(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> Tensor:
    """The convolution of a batch, after all checks."""
    sizes = None if bias is None else bias._array.shape
    options = _checked_options(
        input._array.shape, weight._array.shape, sizes, stride, padding, dilation, transposed, output_padding, groups
    )
    check_dtypes(input, weight, bias, transposed)
    if input._kind.dtype.category == COMPLEX:
        return _complex_convolution(input, weight, bias, options)
    return _convolution(input, weight, bias, sizes or (0,), *options)


def _unbatched(op: Callable[..., Tensor], rank: int, input: Tensor, *args: Any) -> Tensor:
    """`op` of a batch; of one sample as of a batch of one."""
    if input._array.ndim == rank + 2:
        return op(input, *args)
    return op(input.unsqueeze(0), *args).squeeze(0)


def _padded_by_name(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Shape, padding: str, dilation: Shape, groups: int
) -> Tensor:
    """A convolution with `padding="valid"`, none, or `padding="same"`, as much as keeps the sizes."""
    from .image.pad import constant_pad_nd

    rank = weight._array.ndim - 2
    if padding == "valid":
        return _run(input, weight, bias, stride, (0,), dilation, False, (0,), groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}: it is 'valid' or 'same'")
    if any(step != 1 for step in stride):
        raise RuntimeError(f"padding='same' is not supported for strided convolutions: stride={list(stride)}")
    if rank < 1:
        raise RuntimeError(f"weight should have at least three dimensions, but got size {list(weight._array.shape)}")
    check_ranks(input._array.shape, weight._array.shape)
    reach = extent(weight._array.shape[2:], for_each_dim("dilation", dilation, rank))
    both = tuple([(size - 1) // 2 for size in reach])
    odd = [(size - 1) % 2 for size in reach]
    if any(odd):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created",
            UserWarning,
            stacklevel=5,
        )
        amounts: list[int] = []
        for more in reversed(odd):
            amounts += (0, more)
        input = constant_pad_nd(input, amounts)
    return _run(input, weight, bias, stride, both, dilation, False, (0,), groups)


# ----- public functions ---------------------------------------------------------------------------------------------


def _convolution_in(rank: int, inputs: str) -> Any:
    name = f"conv{rank}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        check_operands(name, rank, input, weight, bias, groups)
        steps = integers(name, "stride", stride, rank)
        gaps = integers(name, "dilation", dilation, rank)
        groups = operator.index(groups)
        if isinstance(padding, str):
            return _unbatched(_padded_by_name, rank, input, weight, bias, steps, padding, gaps, groups)
        around = integers(name, "padding", padding, rank)
        if input._array.ndim == rank + 2:
            return _run(input, weight, bias, steps, around, gaps, False, (0,) * rank, groups)
        return _unbatched(_run, rank, input, weight, bias, steps, around, gaps, False, (0,) * rank, groups)

    function.__doc__ = f"Slide filters over {inputs} and sum the products at each place."
    return public(f"nn.functional.{name}", method=False, name=name, autocast=LOWER)(function)


def _transposed_in(rank: int, inputs: str) -> Any:
    name = f"conv_transpose{rank}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        check_operands(name, rank, input, weight, bias, groups)
        steps = integers(name, "stride", stride, rank)
        around = integers(name, "padding", padding, rank)
        more = integers(name, "output_padding", output_padding, rank)
        gaps = integers(name, "dilation", dilation, rank)
        return _unbatched(_run, rank, input, weight, bias, steps, around, gaps, True, more, operator.index(groups))

    function.__doc__ = (
        f"Spread each element of {inputs} by the filters and add what overlaps: transposed `conv{rank}d`."
    )
    return public(f"nn.functional.{name}", method=False, name=name, autocast=LOWER)(function)


conv1d = _convolution_in(1, "signals (batch, channels, length)")
conv2d = _convolution_in(2, "images (batch, channels, height, width)")
conv3d = _convolution_in(3, "volumes (batch, channels, depth, height, width)")
conv_transpose1d = _transposed_in(1, "signals")
conv_transpose2d = _transposed_in(2, "images")
conv_transpose3d = _transposed_in(3, "volumes")


@public(method=False, autocast=on(cuda=LOWER))
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution or a transposed one, in as many dimensions as the weight has."""
    steps, around, gaps, more = (
        integers("convolution", name, value, None)
        for name, value in (
            ("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding)
        )
    )  # fmt: skip
    return _run(input, weight, bias, steps, around, gaps, bool(transposed), more, operator.index(groups))


@public(method=False)
def mkldnn_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any, stride: Any, dilation: Any, groups: int
) -> Tensor:
    """`convolution` under the name of one library's, which has its options in another order."""
    rank = weight._array.ndim - 2
    return convolution(input, weight, bias, stride, padding, dilation, False, (0,) * rank, groups)


# ----- time, batch, channels ----------------------------------------------------------------------------------------


def _time_gradients(
    grads: list[Any], needed: tuple[bool, ...], self: Any, weight: Any, bias: Any, pad: int
) -> list[Any]:
    if grads[0] is None:
        return [None, None, None]
    grad, input, kernel = grads[0].permute(1, 2, 0), self.permute(1, 2, 0), weight.permute(2, 1, 0)
    found = _convolution_backward(grad, input, kernel, (1,), (pad,), (1,), False, (0,), 1, needed)
    return [
        found[0].permute(2, 0, 1).contiguous() if needed[0] else None,
        found[1].permute(2, 1, 0).contiguous() if needed[1] else None,
        found[2] if needed[2] else None,
    ]


@primitive("ConvTbcBackward0", joint=_time_gradients)
@in_single
def _conv_tbc(self: Array, weight: Array, bias: Array, pad: int) -> Array:
    input, kernel = self.transpose(1, 2, 0), weight.transpose(2, 1, 0)
    steps = len(self) + 2 * pad - len(weight) + 1
    found = correlate(input, kernel, bias, (steps,), Geometry((1,), (pad,), (1,), 1), False)
    result = new_array((steps, *self.shape[1:2], weight.shape[2]), self.dtype, False, self)
    result[...] = found.transpose(2, 0, 1)
    return result


@public("nn.functional.conv_tbc", method=False, autocast=LOWER)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of signals (time, batch, channels) with a weight (kernel, channels, outputs)."""
    if input._array.ndim != 3:
        raise RuntimeError(f"Input must have 3 dims: time, batch, in_channel, but got {list(input._array.shape)}")
    if weight._array.ndim != 3:
        raise RuntimeError(
            f"Weight tensor must have 3 dims: kernel_width, in_channels, out_channels, but got {list(weight.shape)}"
        )
    if bias._array.ndim != 1:
        raise RuntimeError(f"Bias must be 1-D, but got {list(bias._array.shape)}")
    steps, _, channels = input._array.shape
    kernel, inputs, outputs = weight._array.shape
    if channels != inputs:
        raise RuntimeError(
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor (input channels): "
            f"{channels} and {inputs}"
        )
    if bias._array.shape[0] != outputs:
        raise RuntimeError(
            f"Bias size must equal dim 2 in the weight tensor (output channels): {bias._array.shape[0]} and {outputs}"
        )
    if steps + 2 * pad - kernel + 1 < 0:
        raise RuntimeError(f"a kernel of width {kernel} is too wide for {steps} steps with padding {pad}")
    names = [LEGACY_NAMES[each._kind.dtype] for each in (input, weight, bias)]
    if len(set(names)) > 1:
        raise RuntimeError(f"input, weight and bias must have the same dtype, but got {', '.join(names)}")
    if input._kind.dtype.category == COMPLEX and any(each.requires_grad for each in (input, weight, bias)):
        raise RuntimeError("conv_tbc does not support automatic differentiation for outputs with complex dtype.")
    if pad < 0:  # steps at both ends are left out
        input, pad = input.narrow(0, -pad, steps + 2 * pad), 0
    return _conv_tbc(input, weight, bias, pad)
