"""Maxima and means over windows, in one, two or three dimensions.

The result has the layout of the input, plain or with the channels innermost (`last`), so nothing is reordered.

**Maxima.** oneDNN notes for each window which of its elements is the largest, counted within the window: its workspace.
`max_pool` returns it as an array of the result's shape, `max_pool_backward` takes it, and `window_indices` turns it
into the positions within the input's plane that users see. oneDNN takes neither NaN nor minus infinity for a maximum,
where PyTorch does, so an input with such elements is `Unsupported`. Finding that out takes one pass over the input.

**Means.** PyTorch divides by the part of a window that lies within the padded input, oneDNN by the whole window or by
the part within the input. Where these differ, the call is `Unsupported`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from .constants import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    FORWARD_INFERENCE,
    FORWARD_TRAINING,
    POOLING_AVERAGE_EXCLUDE_PADDING,
    POOLING_AVERAGE_INCLUDE_PADDING,
    POOLING_MAX,
    S32,
    SRC,
    U8,
    WORKSPACE,
    Dims,
)
from .library import Handle, Unsupported
from .matmul import matmul
from .memory import Array, Shape, address, common_data_type, dense_strides, descriptor, new_array, prepared
from .primitives import CAPACITY, Argument, Primitive, cached, described


class Window(NamedTuple):
    """How a window moves over its input: a number for each spatial dimension."""

    kernel: Shape
    stride: Shape
    padding: Shape
    dilation: Shape


class _Problem(NamedTuple):
    input: Shape
    output: Shape
    window: Window
    algorithm: int
    kind: int
    last: bool


# ----- for callers --------------------------------------------------------------------------------------------------


def max_pool(
    input: Array, window: Window, sizes: Shape, indices: bool = True, last: bool = False
) -> tuple[Array, Array | None]:
    """The maxima of windows on (batch, channels, *input sizes), `sizes` of them, and the workspace if `indices`."""
    problem = _problem(input.shape, sizes, window, POOLING_MAX, common_data_type(input), last)
    input, strides = prepared(input)
    found = _forward(problem, strides, indices)
    if not _all_finite(input):
        raise Unsupported("oneDNN's maxima ignore NaN and minus infinity")
    result = new_array(problem.output, input.dtype, last)
    if not indices:
        found.run([address(input), address(result)])
        return result, None
    workspace = new_array(problem.output, _workspace_dtype(window.kernel), last)
    found.run([address(input), address(result), address(workspace)])
    return result, workspace


def max_pool_backward(grad: Array, workspace: Array, input_shape: Shape, window: Window, last: bool = False) -> Array:
    """The gradient of `max_pool` with respect to its input."""
    kind = common_data_type(grad)
    problem = _problem(tuple(input_shape), grad.shape[2:], window, POOLING_MAX, kind, last)
    if workspace.shape != grad.shape or workspace.dtype != _workspace_dtype(window.kernel):
        raise ValueError(f"a workspace {workspace.dtype}{list(workspace.shape)} is not one for {list(grad.shape)}")
    grad, strides = prepared(grad)
    workspace, workspace_strides = prepared(workspace)
    found = _backward(problem, strides, workspace_strides)
    result = new_array(problem.input, grad.dtype, last)
    found.run([address(grad), address(result), address(workspace)])
    return result


def window_indices(workspace: Array, input_shape: Shape, window: Window) -> Array:
    """Where each window's maximum lies in its plane of the input, counted row by row: PyTorch's indices."""
    rank = len(window.kernel)
    places = np.unravel_index(workspace, window.kernel)
    result = np.zeros(workspace.shape, np.int64)
    for dim, place in enumerate(places):
        start = np.arange(workspace.shape[2 + dim]) * window.stride[dim] - window.padding[dim]
        start = start.reshape((-1,) + (1,) * (rank - 1 - dim))
        result *= input_shape[2 + dim]
        result += start + place * window.dilation[dim]
    return result


def average_pool(input: Array, window: Window, sizes: Shape, include_padding: bool = True, last: bool = False) -> Array:
    """The means of windows on (batch, channels, *input sizes), `sizes` of them."""
    problem = _average(input.shape, sizes, window, include_padding, common_data_type(input), last)
    input, strides = prepared(input)
    found = _forward(problem, strides, False)
    result = new_array(problem.output, input.dtype, last)
    found.run([address(input), address(result)])
    return result


def average_pool_backward(
    grad: Array, input_shape: Shape, window: Window, include_padding: bool = True, last: bool = False
) -> Array:
    """The gradient of `average_pool` with respect to its input."""
    kind = common_data_type(grad)
    problem = _average(tuple(input_shape), grad.shape[2:], window, include_padding, kind, last)
    grad, strides = prepared(grad)
    found = _backward(problem, strides, None)
    result = new_array(problem.input, grad.dtype, last)
    found.run([address(grad), address(result)])
    return result


# ----- checks -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=CAPACITY)
def _problem(input: Shape, sizes: Shape, window: Window, algorithm: int, kind: int, last: bool) -> _Problem:
    rank = len(input) - 2
    if rank not in (1, 2, 3):
        raise Unsupported("oneDNN pools in one, two or three dimensions")
    if (
        not len(sizes)
        == len(window.kernel)
        == len(window.stride)
        == len(window.padding)
        == len(window.dilation)
        == rank
    ):
        raise ValueError(f"expected {rank} numbers each, but got sizes {sizes} and {window}")
    if min(*window.kernel, *window.stride, *window.dilation) < 1 or min(window.padding) < 0:
        raise ValueError(f"kernel, stride and dilation must be positive and padding not negative, but got {window}")
    problem = _Problem(input, (*input[:2], *sizes), Window(*window), algorithm, kind, last)
    if 0 in input or 0 in problem.output:
        raise Unsupported("oneDNN is not asked about empty arrays")
    # The last window must start within the input or its padding before it: beyond, oneDNN would read other memory.
    starts = zip(sizes, window.stride, window.padding, input[2:], strict=True)
    if any((count - 1) * step - pad >= size for count, step, pad, size in starts):
        raise ValueError(f"{sizes} windows {window} are more than an input of shape {input} has")
    _check_windows_reach_the_input(problem)
    return problem


@functools.lru_cache(maxsize=CAPACITY)
def _average(input: Shape, sizes: Shape, window: Window, include: bool, kind: int, last: bool) -> _Problem:
    algorithm = POOLING_AVERAGE_INCLUDE_PADDING if include else POOLING_AVERAGE_EXCLUDE_PADDING
    problem = _problem(input, sizes, window, algorithm, kind, last)
    if set(window.dilation) != {1}:
        raise ValueError(f"the windows of means have no dilation, but got {window}")
    if include and any(after > pad for after, pad in zip(_padding_after(problem), window.padding, strict=True)):
        raise Unsupported("oneDNN divides by whole windows where they reach beyond the padding")
    return problem


def _padding_after(problem: _Problem) -> list[int]:
    """How far the last window of each dimension reaches beyond the input: less than 0 if it does not get to the end."""
    kernel, stride, padding, dilation = problem.window
    return [
        (outputs - 1) * step + spread * (length - 1) + 1 - inputs - pad
        for outputs, inputs, length, step, pad, spread in zip(
            problem.output[2:], problem.input[2:], kernel, stride, padding, dilation, strict=True
        )
    ]


def _check_windows_reach_the_input(problem: _Problem) -> None:
    """A window that has no element of the input has no maximum and no mean, and both libraries improvise."""
    kernel, stride, padding, dilation = problem.window
    for size, count, length, step, pad, spread in zip(
        problem.input[2:], problem.output[2:], kernel, stride, padding, dilation, strict=True
    ):
        places = np.arange(count)[:, None] * step - pad + np.arange(length) * spread
        if not ((places >= 0) & (places < size)).any(axis=1).all():
            raise Unsupported("oneDNN is not asked about windows that lie outside of the input")


_BLOCK = 1024


def _all_finite(array: Array) -> bool:
    """Whether there is no NaN and no infinity. Sums of blocks tell: a product with ones makes them with all threads.

    Finite elements whose sum is not finite are taken for the contrary, which costs time only.
    """
    flat = array.ravel(order="K")
    whole = flat.size - flat.size % _BLOCK
    sums = [flat[whole:].astype(np.float32)]
    if whole:
        ones = np.ones((_BLOCK, 1), array.dtype)
        sums.append(matmul(flat[:whole].reshape(-1, _BLOCK), ones).astype(np.float32))
    return all(bool(np.isfinite(each).all()) for each in sums)


def _workspace_dtype(kernel: Shape) -> Any:
    return np.dtype(np.uint8 if math.prod(kernel) <= 256 else np.int32)


# ----- primitives ---------------------------------------------------------------------------------------------------


def _movement(problem: _Problem) -> list[Any]:
    """Strides, kernel, dilations and paddings; oneDNN counts dilation from 0."""
    kernel, stride, padding, dilation = problem.window
    spread = [each - 1 for each in dilation]
    return [Dims(*each) for each in (stride, kernel, spread, padding, _padding_after(problem))]


def _dense(problem: _Problem, shape: Shape) -> Handle:
    return descriptor(shape, dense_strides(shape, problem.last), problem.kind)


def _describe_forward(problem: _Problem, training: bool, reference: bool = False) -> Handle:
    return described(
        "pooling_forward",
        FORWARD_TRAINING if training else FORWARD_INFERENCE,
        problem.algorithm,
        _dense(problem, problem.input),
        _dense(problem, problem.output),
        *_movement(problem),
        reference=reference,
    )


def _workspace(problem: _Problem, strides: Shape) -> Handle:
    kind = U8 if _workspace_dtype(problem.window.kernel) == np.uint8 else S32
    return descriptor(problem.output, strides, kind)


@cached
def _forward(problem: _Problem, input: Shape, indices: bool) -> Primitive:
    arguments = [
        Argument(SRC, descriptor(problem.input, input, problem.kind)),
        Argument(DST, _dense(problem, problem.output), True),
    ]
    if indices:
        strides = dense_strides(problem.output, problem.last)
        arguments.append(Argument(WORKSPACE, _workspace(problem, strides), True))
    return Primitive(_describe_forward(problem, indices), arguments)


@cached
def _backward(problem: _Problem, grad: Shape, workspace: Shape | None) -> Primitive:
    made = described(
        "pooling_backward",
        problem.algorithm,
        _dense(problem, problem.input),
        _dense(problem, problem.output),
        *_movement(problem),
        _describe_forward(problem, True, reference=True),
    )
    arguments = [
        Argument(DIFF_DST, descriptor(problem.output, grad, problem.kind)),
        Argument(DIFF_SRC, _dense(problem, problem.input), True),
    ]
    if workspace is not None:
        arguments.append(Argument(WORKSPACE, _workspace(problem, workspace)))
    return Primitive(made, arguments)
