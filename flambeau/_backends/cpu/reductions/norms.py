"""Normalisations by generated kernels: what their NumPy versions do, in one or two passes over memory.

Functions take arrays and give arrays, or None where no kernel fits: other dtypes, inputs without elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.rows import programs
from ...._codegen.rows.channel_norm import (
    batch_norm_lines,
    batch_norm_lines_backward,
    batch_norm_planes,
    batch_norm_planes_backward,
    move_statistics,
)
from ...._codegen.rows.group_norm import group_norm_rows, group_norm_rows_backward
from ...._codegen.rows.in_lanes import rows_in_lanes
from ...._codegen.rows.one_by_one import rows_one_by_one, rows_with_sums
from ...._codegen.rows.shared import LINES
from ...._core.arrays.quick import dim_moved
from ...._core.geometry.layout import in_format_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..elementwise.copy import contiguous
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import name_of_type, only_gradient, wide_type
from .rows import is_short

Array = Any

_CHUNK = 128
"""So many rows are summed at a time for the gradients of weight and bias, or fewer."""
_CHUNKS = 32
"""Into so many parts a large array is cut for these, whatever the number of threads: each may have two."""


_made: dict[Any, Any] = {}
"""Kernels by the dtypes of their arrays and what else they depend on: found with one look."""


def _find(kernel: Any, size: int, dtype: Any, parameters: Any, kept: Any, *flags: bool) -> Any:
    """The kernel for an input, parameters and statistics of given dtypes; None: there is none."""
    found = _made.get((kernel, dtype, parameters, kept, flags))
    if found is None:
        names = [name_of_type(each) for each in (dtype, parameters, kept)]
        if None in names or not size:
            return None
        found = _made[kernel, dtype, parameters, kept, flags] = kernel(*names, *flags)
    return found


def _forward_rows(dtype: str, parameters: str, kept: str, short: bool, *flags: bool) -> Any:
    return (rows_in_lanes if short else rows_one_by_one)(programs.norm(dtype, parameters, kept, *flags, wide="float64"))


def _backward_rows(dtype: str, parameters: str, kept: str, *flags: bool) -> Any:
    program = programs.norm_backward(dtype, parameters, kept, *flags, wide="float64")
    return (rows_with_sums if flags[2] else rows_one_by_one)(program)


def layer_norm(
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None,
    bias: Array | None,
    eps: float,
    kept: np.dtype[Any],
    workspace: Workspace = DIRECT,
) -> tuple[Array, Array, Array] | None:
    """The result, the means and 1 / deviations over the last dimensions, which these keep with size 1."""
    inner = len(normalized_shape)
    shape = input.shape[: input.ndim - inner] + (1,) * inner
    mean, rstd = workspace.empty(shape, kept), workspace.empty(shape, kept)
    result = _normalise_rows(input, weight, bias, eps, mean, rstd, workspace)
    return None if result is None else (result, mean, rstd)


def rms_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, eps: float, workspace: Workspace = DIRECT
) -> tuple[Array, Array] | None:
    """The result and 1 / roots of the mean squares over the last dimensions, which these keep with size 1."""
    shape, inner = input.shape, len(normalized_shape)
    rstd = workspace.empty(shape[: len(shape) - inner] + (1,) * inner, wide_type(input.dtype))
    result = _normalise_rows(input, weight, None, eps, None, rstd, workspace)
    return None if result is None else (result, rstd)


def _normalise_rows(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    mean: Array | None,
    rstd: Array,
    workspace: Workspace,
) -> Array | None:
    """The result; means are subtracted where they are to be kept."""
    given = weight if weight is not None else bias
    size, dtype = input.size, input.dtype
    parameters = dtype if given is None else given.dtype
    if not size:
        return None
    rows = rstd.size
    length = size // rows
    flags = is_short(rows, length), weight is not None, bias is not None, mean is not None
    kernel = _find(_forward_rows, size, dtype, parameters, rstd.dtype, *flags)
    if kernel is None:
        return None
    arrays = [workspace.empty(input.shape, dtype), rstd, contiguous(input)]
    if mean is not None:
        arrays.insert(1, mean)
    arrays += [contiguous(each) for each in (weight, bias) if each is not None]
    return workspace.run(kernel, *arrays, eps, rows, length)


def layer_norm_backward(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    rstd: Array,
    workspace: Workspace = DIRECT,
) -> list[Array | None] | None:
    """The gradients of input, weight and bias, those that are needed."""
    return _rows_backward(grads, needed, input, normalized_shape, weight, mean, rstd, workspace)


def rms_norm_backward(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None,
    rstd: Array,
    workspace: Workspace = DIRECT,
) -> list[Array | None] | None:
    """The gradients of input and weight, those that are needed."""
    found = _rows_backward(grads, (*needed, False), input, normalized_shape, weight, None, rstd, workspace)
    return None if found is None else found[:2]


def _rows_backward(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    shape: tuple[int, ...],
    weight: Array | None,
    mean: Array | None,
    rstd: Array,
    workspace: Workspace,
) -> list[Array | None] | None:
    """The gradients of input, weight and bias; statistics are kept in the dtype of the parameters."""
    grad = only_gradient(grads)
    if grad is None:
        return None
    size, dtype = input.size, input.dtype
    if grad.dtype is not dtype or not size:
        return None
    if REPRODUCIBILITY.samples is not None and (needed[1] or needed[2]):
        return _rows_backward_by_samples(grads, needed, input, shape, weight, mean, rstd, workspace)
    of_input, of_parameters = needed[0], needed[1] or needed[2]
    weighted, centre = weight is not None and of_input, mean is not None
    parameters = rstd.dtype if weight is None else weight.dtype
    flags = weighted, of_input, of_parameters, centre
    kernel = _find(_backward_rows, size, dtype, parameters, rstd.dtype, *flags)
    if kernel is None:
        return None
    rows = rstd.size
    length = size // rows
    results: list[Array | None] = [workspace.empty(input.shape, input.dtype) if of_input else None, None, None]
    sums = 0
    if of_parameters:
        sums = 2 if centre else 1
        results[1 : 1 + sums] = [workspace.empty(shape, parameters) for _ in range(sums)]
    arrays = [each for each in results if each is not None]
    arrays += [contiguous(grad), contiguous(input), rstd]
    arrays += [each for each in (mean, contiguous(weight) if weighted else None) if each is not None]
    if sums:
        chunk = _CHUNK if size <= 32768 else max(1, min(_CHUNK, rows // _CHUNKS))
        partial = workspace.empty(-(-rows // chunk) * sums * length, wide_type(input.dtype))
        workspace.run(kernel, *arrays, rows, length, partial, chunk)
    else:
        workspace.run(kernel, *arrays, rows, length)
    return [result if wanted else None for result, wanted in zip(results, needed, strict=True)]


def _slope_rows(dtype: str, parameters: str, kept: str, centre: bool) -> Any:
    return rows_one_by_one(programs.norm_slopes(dtype, kept, centre, wide="float64"))


def _rows_backward_by_samples(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    shape: tuple[int, ...],
    weight: Array | None,
    mean: Array | None,
    rstd: Array,
    workspace: Workspace,
) -> list[Array | None] | None:
    """`_rows_backward`; the gradients of parameters are trees over samples."""
    if workspace is not DIRECT:
        raise NotImplementedError("sums over samples take no workspace")
    grad = only_gradient(grads)
    kernel = _find(_slope_rows, input.size, input.dtype, input.dtype, rstd.dtype, mean is not None)
    if grad is None or kernel is None:
        return None
    results: list[Array | None] = [None, None, None]
    if needed[0]:
        done = _rows_backward(grads, (True, False, False), input, shape, weight, mean, rstd, workspace)
        if done is None:
            return None
        results = done
    parameters = rstd.dtype if weight is None else weight.dtype
    outer = tuple(range(input.ndim - len(shape)))
    if needed[1]:
        arrays = [np.empty(input.shape, input.dtype), contiguous(grad), contiguous(input), rstd]
        slopes = kernel(*arrays, *([] if mean is None else [mean]), rstd.size, input.size // rstd.size)
        results[1] = _summed(slopes, outer).astype(parameters, copy=False)
    if needed[2]:
        results[2] = _summed(grad, outer).astype(parameters, copy=False)
    return results


def _summed(values: Array, outer: tuple[int, ...]) -> Array:
    return REPRODUCIBILITY.samples.total(values, outer, False) if outer else values.copy()


# ----- channels of a batch -----------------------------------------------------------------------------------------


def _as_lines(array: Array) -> Array | None:
    """A view whose last dimension has the channels, if memory is in that order; None: planes, or neither."""
    if array.ndim == 2:
        return array if array.flags.c_contiguous else None
    if array.ndim in (4, 5) and not array.flags.c_contiguous:
        turned = array.transpose(0, 2, 3, 1) if array.ndim == 4 else array.transpose(0, 2, 3, 4, 1)
        return turned if turned.flags.c_contiguous else None
    return None


def _channels_second(lines: Array) -> Array:
    return lines.transpose(0, 3, 1, 2) if lines.ndim == 4 else lines.transpose(0, 4, 1, 2, 3)


def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
    kept: np.dtype[Any],
    workspace: Workspace = DIRECT,
) -> tuple[Array, Array, Array, Array] | None:
    """The result, the mean and 1 / deviation that the derivative needs (of evaluation: nothing), the variance."""
    size, dtype = input.size, input.dtype
    if not size or input.ndim < 2 or (training and REPRODUCIBILITY.machine):  # (NumPy runs no kernel of this)
        return None
    lines = _as_lines(input)
    given = weight if weight is not None else bias
    parameters = dtype if given is None else given.dtype
    if not training:
        assert running_mean is not None
        assert running_var is not None
        kept = running_mean.dtype
        if running_var.dtype is not kept:
            return None
    flags = weight is not None, bias is not None, training
    kernel = _find(batch_norm_planes if lines is None else batch_norm_lines, size, dtype, parameters, kept, *flags)
    if kernel is None:
        return None
    samples, channels = input.shape[:2]
    wide = wide_type(input.dtype)
    if training:
        mean, rstd, variance = (workspace.empty(channels, each) for each in (kept, kept, wide))
    else:
        mean = contiguous(running_mean)
        rstd = variance = contiguous(running_var)
    first = mean if weight is None else contiguous(weight)
    second = mean if bias is None else contiguous(bias)
    if lines is None:
        source = contiguous(input)
        result = workspace.empty(input.shape, input.dtype)
        places = size // (samples * channels)
        workspace.run(kernel, result, source, mean, rstd, variance, first, second, samples, channels, places, eps)
    else:
        result = workspace.empty(lines.shape, input.dtype)
        count = size // channels
        work = workspace.empty((2 + (-(-count // LINES) if training else 0)) * channels, wide)
        workspace.run(kernel, result, lines, mean, rstd, variance, first, second, work, count, channels, eps)
        if input.ndim > 2:
            result = _channels_second(result)
    if training:
        return result, mean, rstd, variance
    return result, workspace.empty(0, kept), workspace.empty(0, kept), variance.astype(wide, copy=False)


def batch_norm_backward(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
    result1: Array,
    result2: Array,
    workspace: Workspace = DIRECT,
) -> list[Array | None] | None:
    """The gradients of input, weight and bias, those that are needed."""
    grad = only_gradient(grads)
    if grad is None:
        return None
    mean, rstd = (result1, result2) if training else (running_mean, running_var)
    assert mean is not None
    assert rstd is not None
    size, dtype = input.size, input.dtype
    if not size or input.ndim < 2 or grad.dtype is not dtype or rstd.dtype is not mean.dtype:
        return None
    if training and REPRODUCIBILITY.machine:
        return None
    if REPRODUCIBILITY.samples is not None and len(input) > 1:
        given = input, weight, running_mean, running_var, training, eps, result1, result2
        return _batch_norm_backward_by_samples(grad, needed, *given)
    lines = _as_lines(input)
    parameters = mean.dtype if weight is None else weight.dtype  # statistics are kept in the dtype of parameters
    flags = weight is not None, training, needed[0]
    which = batch_norm_planes_backward if lines is None else batch_norm_lines_backward
    kernel = _find(which, size, dtype, parameters, mean.dtype, *flags)
    if kernel is None:
        return None
    samples, channels = input.shape[:2]
    mean, rstd = contiguous(mean), contiguous(rstd)
    factors = mean if weight is None else contiguous(weight)
    of_weight, of_bias = workspace.empty(channels, parameters), workspace.empty(channels, parameters)
    if lines is None:
        source, coming = contiguous(input), contiguous(grad)
        of_input = workspace.empty(input.shape, input.dtype) if needed[0] else source
        arrays = of_input, of_weight, of_bias, coming, source, mean, rstd, factors
        workspace.run(kernel, *arrays, samples, channels, size // (samples * channels), eps)
    else:
        coming = contiguous(grad if input.ndim == 2 else dim_moved(grad, 1, -1))
        of_input = workspace.empty(lines.shape, input.dtype) if needed[0] else lines
        count = size // channels
        work = workspace.empty((4 + 2 * -(-count // LINES)) * channels, wide_type(input.dtype))
        arrays = of_input, of_weight, of_bias, coming, lines, mean, rstd, factors
        workspace.run(kernel, *arrays, work, count, channels, eps)
        if input.ndim > 2:
            of_input = _channels_second(of_input)
    return [of_input if needed[0] else None, of_weight if needed[1] else None, of_bias if needed[2] else None]


def _batch_norm_backward_by_samples(
    grad: Array, needed: tuple[bool, ...], input: Array, *given: Any
) -> list[Array | None] | None:
    """`batch_norm_backward` of evaluation; the gradients of weight and bias are trees over samples."""
    found = []
    for sample in range(len(input)):
        one = slice(sample, sample + 1)
        done = batch_norm_backward([grad[one]], needed, input[one], *given)
        if done is None:
            return None
        found.append(done)
    of_input, *of_parameters = zip(*found, strict=True)
    whole = in_format_of(np.concatenate(of_input), input) if needed[0] else None
    totals = [
        REPRODUCIBILITY.samples.samples_sum(np.stack(each)) if wanted else None
        for each, wanted in zip(of_parameters, needed[1:], strict=True)
    ]
    return [whole, *totals]


def move_running(
    running_mean: Array,
    running_var: Array,
    mean: Array,
    variance: Array,
    momentum: float,
    size: int,
    workspace: Workspace = DIRECT,
) -> bool | None:
    """Move running statistics towards those of a batch of `size` elements; None: not done."""
    count = size // max(variance.size, 1)
    running = running_mean.dtype
    if running_var.dtype is not running:
        return None
    if not (running_mean.flags.carray and running_var.flags.carray):  # contiguous, and not read-only
        return None
    kernel = _find(move_statistics, mean.size, running, mean.dtype, variance.dtype)
    if kernel is None:
        return None
    factor = count / (count - 1) if count > 1 else float("nan")
    workspace.changes(running_mean, running_var)
    workspace.run(kernel, running_mean, running_var, mean, variance, mean.size, float(momentum), factor)
    return True


# ----- groups of channels ------------------------------------------------------------------------------------------


def group_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    samples: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
    kept: np.dtype[Any],
    workspace: Workspace = DIRECT,
) -> tuple[Array, Array, Array] | None:
    """The result, in the memory order of the input, the means and 1 / deviations."""
    size, dtype = input.size, input.dtype
    given = weight if weight is not None else bias
    parameters = dtype if given is None else given.dtype
    kernel = _find(group_norm_rows, size, dtype, parameters, kept, weight is not None, bias is not None)
    if kernel is None or not size:
        return None
    source = contiguous(input)
    mean, rstd = workspace.empty((samples, groups), kept), workspace.empty((samples, groups), kept)
    first, second = (source if each is None else contiguous(each) for each in (weight, bias))
    result = workspace.empty(input.shape, input.dtype)
    rows = samples * groups
    workspace.run(kernel, result, source, mean, rstd, first, second, rows, groups, channels // groups, places, eps)
    return in_format_of(result, input), mean, rstd


def group_norm_backward(
    grads: list[Array | None],
    needed: tuple[bool, ...],
    input: Array,
    weight: Array | None,
    samples: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
    mean: Array,
    rstd: Array,
    workspace: Workspace = DIRECT,
) -> list[Array | None] | None:
    """The gradients of input, weight and bias, those that are needed."""
    grad = only_gradient(grads)
    if grad is None:
        return None
    size, dtype = input.size, input.dtype
    if not size or grad.dtype is not dtype:
        return None
    parameters = mean.dtype if weight is None else weight.dtype  # statistics are kept in the dtype of parameters
    kernel = _find(group_norm_rows_backward, size, dtype, parameters, mean.dtype, weight is not None, needed[0])
    if kernel is None:
        return None
    source = contiguous(input)
    factors = source if weight is None else contiguous(weight)
    results = [
        workspace.empty(input.shape, input.dtype) if needed[0] else source,
        workspace.empty(channels, parameters),
        workspace.empty(channels, parameters),
    ]
    partial = workspace.empty(2 * samples * channels, wide_type(input.dtype))
    arrays = *results, partial, contiguous(grad), source, contiguous(mean), contiguous(rstd), factors
    workspace.run(kernel, *arrays, samples * groups, groups, channels // groups, places)
    if REPRODUCIBILITY.samples is not None:
        if workspace is not DIRECT:
            raise NotImplementedError("sums over samples take no workspace")
        for number, of_samples in enumerate(partial.reshape(2, samples, channels), 1):
            results[number] = REPRODUCIBILITY.samples.total(of_samples, (0,), False).astype(parameters, copy=False)
    return [result if wanted else None for result, wanted in zip(results, needed, strict=True)]
