"""Convolution, its two derivatives, and the transposed convolution, in one, two or three dimensions.

**Layouts.** What counts for the speed of a convolution is the layout in which the primitive sees its arrays. Arrays are
(batch, channels, *sizes), and the caller says by `last` whether the channels of the result lie innermost.

- With `last`, the primitive is asked for with the channels innermost in both input and output. oneDNN has its best
  kernels for that layout too, so a network in channels_last runs from layer to layer without a single reorder of
  activations; only an input that comes in another layout is reordered, once, at the door.
- Without, both are left to oneDNN (`format_any`): it chooses a blocked layout, into and out of which the arrays are
  reordered, except where it prefers the plain one, as for images of three channels. The plain layout itself, which
  would need no reorder, only has kernels that copy windows and multiply matrices: 15.8 ms against 10.3 for
  32x64x32x32 with 3x3 kernels in float32, and more than that in bfloat16.
- Weights are always left to oneDNN: they are small beside the activations. In inference the reordered weights can be
  kept in a `PackedWeights`.

If the first choice has only reference code, the other is tried.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..memory.workspace import DIRECT, Workspace
from .calls import run
from .constants import (
    BIAS,
    CONVOLUTION_DIRECT,
    DECONVOLUTION_DIRECT,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    FORWARD_TRAINING,
    SRC,
    WEIGHTS,
    Dims,
)
from .library import Handle, Unsupported
from .memory import Array, Shape, common_data_type, dense_strides, descriptor, new_array, prepared
from .primitives import CAPACITY, Argument, PackedWeights, Primitive, cached, described


class Geometry(NamedTuple):
    """How a kernel moves over its input: a number for each spatial dimension, and the groups of channels."""

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int


class _Problem(NamedTuple):
    """A convolution from `input` to `output`, as oneDNN sees it; weights are (outputs, inputs of a group, *kernel)."""

    input: Shape
    output: Shape
    weight: Shape
    geometry: Geometry
    kind: int


# ----- for callers --------------------------------------------------------------------------------------------------


def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    geometry: Geometry,
    last: bool = False,
    packed: PackedWeights | None = None,
    workspace: Workspace = DIRECT,
) -> Array:
    """The convolution of (batch, inputs, *sizes) with (outputs, inputs of one group, *kernel)."""
    problem = _problem(input.shape, weight.shape, geometry, common_data_type(input, weight, bias))
    return _forward(problem, input, weight, _checked_bias(bias, weight.shape[0]), last, packed, workspace)


def convolution_input_gradient(
    grad: Array,
    weight: Array,
    input_shape: Shape,
    geometry: Geometry,
    last: bool = False,
    packed: PackedWeights | None = None,
    workspace: Workspace = DIRECT,
) -> Array:
    """The gradient of `convolution` with respect to its input."""
    problem = _backward_problem(grad.shape, input_shape, weight.shape, geometry, common_data_type(grad, weight))
    grad, grad_strides = prepared(grad)
    weight, weight_strides = prepared(weight)
    found = _input_gradient(problem, grad_strides, weight_strides, last)
    result = new_array(problem.input, grad.dtype, last, workspace)
    run(found, [grad, weight, result], workspace, packed, 1)
    return result


def convolution_weight_gradient(
    grad: Array,
    input: Array,
    weight_shape: Shape,
    geometry: Geometry,
    bias: bool = False,
    last: bool = False,
    workspace: Workspace = DIRECT,
) -> tuple[Array, Array | None]:
    """The gradient of `convolution` with respect to its weights and, if asked for, its bias."""
    problem = _backward_problem(grad.shape, input.shape, weight_shape, geometry, common_data_type(grad, input))
    grad, grad_strides = prepared(grad)
    input, input_strides = prepared(input)
    found = _weight_gradient(problem, grad_strides, input_strides, bias, last)
    result = new_array(problem.weight, grad.dtype, last, workspace)
    arrays = [grad, input, result]
    of_bias = None
    if bias:
        of_bias = new_array(problem.weight[:1], grad.dtype, workspace=workspace)
        arrays.append(of_bias)
    run(found, arrays, workspace)
    return result, of_bias


def transposed_convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    geometry: Geometry,
    output_padding: Shape,
    last: bool = False,
    packed: PackedWeights | None = None,
) -> Array:
    """The transposed convolution of (batch, inputs, *sizes) with (inputs, outputs of one group, *kernel).

    Its gradients are those of a convolution in the other direction: `transposed_input_gradient` and
    `transposed_weight_gradient`.
    """
    kind = common_data_type(input, weight, bias)
    problem = _transposed_problem(input.shape, weight.shape, geometry, output_padding, kind)
    bias = _checked_bias(bias, problem.input[1])
    input, input_strides = prepared(input)
    weight, weight_strides = prepared(weight)
    found = _transposed(problem, input_strides, weight_strides, bias is not None, last)
    result = new_array(problem.input, input.dtype, last)
    run(found, [input, weight, result] if bias is None else [input, weight, result, bias], DIRECT, packed, 1)
    return result


def transposed_input_gradient(
    grad: Array,
    weight: Array,
    input_shape: Shape,
    geometry: Geometry,
    last: bool = False,
    packed: PackedWeights | None = None,
) -> Array:
    """The gradient of `transposed_convolution` with respect to its input: a convolution."""
    problem = _backward_problem(input_shape, grad.shape, weight.shape, geometry, common_data_type(grad, weight))
    return _forward(problem, grad, weight, None, last, packed, DIRECT)


def transposed_weight_gradient(
    grad: Array, input: Array, weight_shape: Shape, geometry: Geometry, last: bool = False
) -> Array:
    """The gradient of `transposed_convolution` with respect to its weights: a convolution's, with the arrays exchanged.

    The gradient of the bias is the sum of `grad` over all but the channels.
    """
    return convolution_weight_gradient(input, grad, weight_shape, geometry, False, last)[0]


# ----- checks: the library itself does not look at what lies behind an address --------------------------------------


@functools.lru_cache(maxsize=CAPACITY)
def _problem(input: Shape, weight: Shape, geometry: Geometry, kind: int) -> _Problem:
    _check(input, weight, geometry)
    if weight[1] * geometry.groups != input[1] or weight[0] % geometry.groups:
        raise ValueError(f"weights of shape {weight} in {geometry.groups} groups do not fit {input}")
    output = (input[0], weight[0], *_sizes(input[2:], weight[2:], geometry))
    return _Problem(input, output, weight, geometry, kind)


@functools.lru_cache(maxsize=CAPACITY)
def _backward_problem(output: Shape, input: Shape, weight: Shape, geometry: Geometry, kind: int) -> _Problem:
    problem = _problem(input, weight, geometry, kind)
    if problem.output != output:
        raise ValueError(f"shapes {input}, {weight} and {output} do not belong to one convolution with {geometry}")
    return problem


@functools.lru_cache(maxsize=CAPACITY)
def _transposed_problem(input: Shape, weight: Shape, geometry: Geometry, more: Shape, kind: int) -> _Problem:
    """As a convolution: from the larger array to the smaller one."""
    _check(input, weight, geometry)
    if weight[0] != input[1] or weight[0] % geometry.groups:
        raise ValueError(f"weights of shape {weight} in {geometry.groups} groups do not fit {input}")
    sizes = tuple(
        (size - 1) * step - 2 * pad + spread * (length - 1) + 1 + extra
        for size, length, step, pad, spread, extra in zip(input[2:], weight[2:], *geometry[:3], more, strict=True)
    )
    if min(sizes) < 1:
        raise Unsupported("oneDNN is not asked about empty arrays")
    return _Problem((input[0], weight[1] * geometry.groups, *sizes), input, weight, geometry, kind)


def _sizes(sizes: Shape, kernel: Shape, geometry: Geometry) -> Shape:
    found = tuple(
        (size + 2 * pad - spread * (length - 1) - 1) // step + 1
        for size, length, step, pad, spread in zip(sizes, kernel, *geometry[:3], strict=True)
    )
    if min(found) < 1:
        raise Unsupported("oneDNN is not asked about empty arrays")
    return found


def _check(first: Shape, second: Shape, geometry: Geometry) -> None:
    rank = len(first) - 2
    if rank not in (1, 2, 3) or len(second) != len(first):
        raise Unsupported("oneDNN convolves in one, two or three dimensions")
    stride, padding, dilation, groups = geometry
    if not len(stride) == len(padding) == len(dilation) == rank:
        raise ValueError(f"expected {rank} numbers each of stride, padding and dilation, but got {geometry}")
    if min(stride) < 1 or min(dilation) < 1 or groups < 1:
        raise ValueError(f"stride, dilation and groups must be positive, but got {geometry}")
    if min(padding) < 0:
        raise Unsupported("oneDNN has no negative padding")
    if 0 in first or 0 in second:
        raise Unsupported("oneDNN is not asked about empty arrays")


def _checked_bias(bias: Array | None, channels: int) -> Array | None:
    if bias is None:
        return None
    if bias.shape != (channels,):
        raise ValueError(f"expected a bias of shape ({channels},), but got {bias.shape}")
    return bias if bias.flags.carray else np.require(bias, requirements=("C", "A"))


# ----- primitives ---------------------------------------------------------------------------------------------------


def _forward(
    problem: _Problem,
    input: Array,
    weight: Array,
    bias: Array | None,
    last: bool,
    packed: PackedWeights | None,
    workspace: Workspace,
) -> Array:
    input, input_strides = prepared(input)
    weight, weight_strides = prepared(weight)
    found = _correlation(problem, input_strides, weight_strides, bias is not None, last)
    result = new_array(problem.output, input.dtype, last, workspace)
    run(found, [input, weight, result] if bias is None else [input, weight, result, bias], workspace, packed, 1)
    return result


class _Layouts(NamedTuple):
    """The descriptors that a primitive is asked for with."""

    input: Handle
    output: Handle
    weight: Handle


def _candidates(problem: _Problem, last: bool) -> tuple[_Layouts, _Layouts]:
    """The layouts to ask for, the better first; see the top of this file."""
    weight = descriptor(_grouped(problem), None, problem.kind)

    def layouts(input: Shape | None, output: Shape | None) -> _Layouts:
        found = (descriptor(problem.input, input, problem.kind), descriptor(problem.output, output, problem.kind))
        return _Layouts(*found, weight)

    free, dense = layouts(None, None), layouts(*[dense_strides(each, last) for each in problem[:2]])
    return (dense, free) if last else (free, dense)


def _first_described(problem: _Problem, last: bool, describe: Callable[[_Layouts], Handle]) -> Handle:
    """The primitive descriptor for the first layouts for which there is one."""
    first, second = _candidates(problem, last)
    try:
        return describe(first)
    except Unsupported:
        return describe(second)


def _grouped(problem: _Problem) -> Shape:
    """The shape of the weights for oneDNN: (groups, outputs of one, inputs of one, *kernel) where there are groups."""
    groups, weight = problem.geometry.groups, problem.weight
    return weight if groups == 1 else (groups, weight[0] // groups, *weight[1:])


def _weights_as_given(problem: _Problem, strides: Shape) -> Handle:
    """The caller's weights."""
    shape = _grouped(problem)
    if problem.geometry.groups > 1:
        strides = (strides[0] * shape[1], *strides)
    return descriptor(shape, strides, problem.kind)


def _movement(problem: _Problem) -> list[Any]:
    """Strides, dilations and paddings; oneDNN counts dilation from 0. What is left over at the end of a dimension, less
    than a stride, belongs to no window, and the padding there may be shortened by it.
    """
    stride, padding, dilation, _ = problem.geometry
    after = [
        (outputs - 1) * step + spread * (length - 1) + 1 - inputs - pad
        for outputs, inputs, length, step, pad, spread in zip(
            problem.output[2:], problem.input[2:], problem.weight[2:], stride, padding, dilation, strict=True
        )
    ]
    return [Dims(*stride), Dims(*[each - 1 for each in dilation]), Dims(*padding), Dims(*after)]


def _bias(problem: _Problem, channels: int, wanted: bool) -> Handle | None:
    return descriptor((channels,), (1,), problem.kind) if wanted else None


def _describe_forward(problem: _Problem, layouts: _Layouts, bias: bool, reference: bool = False) -> Handle:
    return described(
        "convolution_forward",
        FORWARD_TRAINING,
        CONVOLUTION_DIRECT,
        layouts.input,
        layouts.weight,
        _bias(problem, problem.weight[0], bias),
        layouts.output,
        *_movement(problem),
        reference=reference,
    )


@cached
def _correlation(problem: _Problem, input: Shape, weight: Shape, bias: bool, last: bool) -> Primitive:
    made = _first_described(problem, last, lambda layouts: _describe_forward(problem, layouts, bias))
    arguments = [
        Argument(SRC, descriptor(problem.input, input, problem.kind)),
        Argument(WEIGHTS, _weights_as_given(problem, weight)),
        Argument(DST, descriptor(problem.output, dense_strides(problem.output, last), problem.kind), True),
    ]
    if bias:
        arguments.append(Argument(BIAS, _bias(problem, problem.weight[0], True)))
    return Primitive(made, arguments)


@cached
def _input_gradient(problem: _Problem, grad: Shape, weight: Shape, last: bool) -> Primitive:
    made = _first_described(
        problem,
        last,
        lambda layouts: described(
            "convolution_backward_data",
            CONVOLUTION_DIRECT,
            layouts.input,
            layouts.weight,
            layouts.output,
            *_movement(problem),
            _describe_forward(problem, layouts, False, reference=True),
        ),
    )
    arguments = [
        Argument(DIFF_DST, descriptor(problem.output, grad, problem.kind)),
        Argument(WEIGHTS, _weights_as_given(problem, weight)),
        Argument(DIFF_SRC, descriptor(problem.input, dense_strides(problem.input, last), problem.kind), True),
    ]
    return Primitive(made, arguments)


@cached
def _weight_gradient(problem: _Problem, grad: Shape, input: Shape, bias: bool, last: bool) -> Primitive:
    of_bias = _bias(problem, problem.weight[0], bias)
    made = _first_described(
        problem,
        last,
        lambda layouts: described(
            "convolution_backward_weights",
            CONVOLUTION_DIRECT,
            layouts.input,
            layouts.weight,
            of_bias,
            layouts.output,
            *_movement(problem),
            _describe_forward(problem, layouts, bias, reference=True),
        ),
    )
    arguments = [
        Argument(DIFF_DST, descriptor(problem.output, grad, problem.kind)),
        Argument(SRC, descriptor(problem.input, input, problem.kind)),
        Argument(DIFF_WEIGHTS, _weights_as_given(problem, dense_strides(problem.weight, last)), True),
    ]
    if bias:
        arguments.append(Argument(DIFF_BIAS, of_bias, True))
    return Primitive(made, arguments)


@cached
def _transposed(problem: _Problem, input: Shape, weight: Shape, bias: bool, last: bool) -> Primitive:
    """oneDNN's deconvolution: its input is the output of the convolution that it transposes, and in its weights the
    outputs come before the inputs.
    """
    channels = problem.input[1]
    exchanged = _exchanged(_grouped(problem), problem.geometry.groups)
    weights = descriptor(exchanged, None, problem.kind)
    made = _first_described(
        problem,
        last,
        lambda layouts: described(
            "deconvolution_forward",
            FORWARD_TRAINING,
            DECONVOLUTION_DIRECT,
            layouts.output,
            weights,
            _bias(problem, channels, bias),
            layouts.input,
            *_movement(problem),
        ),
    )
    groups = problem.geometry.groups
    strides = weight if groups == 1 else (weight[0] * (problem.weight[0] // groups), *weight)
    arguments = [
        Argument(SRC, descriptor(problem.output, input, problem.kind)),
        Argument(WEIGHTS, descriptor(exchanged, _exchanged(strides, groups), problem.kind)),
        Argument(DST, descriptor(problem.input, dense_strides(problem.input, last), problem.kind), True),
    ]
    if bias:
        arguments.append(Argument(BIAS, _bias(problem, channels, True)))
    return Primitive(made, arguments)


def _exchanged(entries: Shape, groups: int) -> Shape:
    """Shape or strides of weights with outputs and inputs exchanged."""
    at = 0 if groups == 1 else 1
    return (*entries[:at], entries[at + 1], entries[at], *entries[at + 2 :])
