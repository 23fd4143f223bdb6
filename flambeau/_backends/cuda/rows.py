"""softmax and normalisations of rows on the device. None: no kernel fits, and the reference runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ..._codegen.cuda.rows import (
    THREADS,
    norm_backward_source,
    norm_parameters_source,
    norm_source,
    softmax_backward_source,
    softmax_source,
)
from .array import DeviceArray, empty
from .driver import driver
from .names import name_of
from .reduce import reduced

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_ENOUGH_BLOCKS = 512


def _dense(array: DeviceArray) -> DeviceArray:
    return array if array.form.flags.c_contiguous else array.copy()


def _across(length: int, fast: bool) -> int:
    """How many rows a block has: as many as leave each thread some elements."""
    threads = driver().block_threads(THREADS)
    if not fast:
        return min(threads, 32)
    along = 1
    while along < threads and along * 4 < length:
        along *= 2
    return threads // along


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


def _start(launch: Any, rows: int, across: int, fields: bytes) -> None:
    launch(-(-rows // across), driver().block_threads(THREADS), fields)


# ----- softmax --------------------------------------------------------------------------------------------------------

_FORWARD, _BACKWARD = Struct("=qqqQQq"), Struct("=qqqQQQq")


def _softmax(logarithm: bool) -> Callable[[DeviceArray, int], DeviceArray | None]:
    def run(x: DeviceArray, dim: int) -> DeviceArray | None:
        shape, dtype = x.form.shape, x.form.dtype
        if not x.form.size or not shape or name_of(dtype) not in _FLOATS:
            return None
        x = _dense(x)
        inner = math.prod(shape[dim + 1 :]) if dim != -1 else 1
        length = shape[dim]
        rows, across = x.form.size // length, _across(length, inner == 1)
        made = empty(shape, dtype)
        fields = _FORWARD.pack(rows, length, inner, x.pointer, made.pointer, across)
        _start(_kernel(softmax_source, name_of(dtype), logarithm, inner == 1), rows, across, fields)
        return made

    return run


def _softmax_backward(logarithm: bool) -> Callable[[DeviceArray, DeviceArray, int], DeviceArray | None]:
    def run(grad: DeviceArray, result: DeviceArray, dim: int) -> DeviceArray | None:
        shape, dtype = grad.form.shape, grad.form.dtype
        if not grad.form.size or not shape or name_of(dtype) not in _FLOATS or result.form.dtype != dtype:
            return None
        if result.form.shape != shape:
            return None
        grad, result = _dense(grad), _dense(result)
        inner = math.prod(shape[dim + 1 :]) if dim != -1 else 1
        length = shape[dim]
        rows, across = grad.form.size // length, _across(length, inner == 1)
        made = empty(shape, dtype)
        fields = _BACKWARD.pack(rows, length, inner, grad.pointer, result.pointer, made.pointer, across)
        _start(_kernel(softmax_backward_source, name_of(dtype), logarithm, inner == 1), rows, across, fields)
        return made

    return run


softmax, log_softmax = _softmax(False), _softmax(True)
softmax_backward, log_softmax_backward = _softmax_backward(False), _softmax_backward(True)


# ----- normalisations -------------------------------------------------------------------------------------------------


def layer_norm(
    input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float, kept: np.dtype[Any]
) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:
    """The result, the means and 1 / deviations over the last dimensions, which these keep with size 1."""
    return _normalised(input, normalized_shape, weight, bias, eps, kept, True)


def rms_norm(
    input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any, eps: float
) -> tuple[DeviceArray, DeviceArray] | None:
    """The result and 1 / roots of the mean squares over the last dimensions, which these keep with size 1."""
    kept = np.dtype(np.float64 if name_of(input.form.dtype) == "float64" else np.float32)
    found = _normalised(input, normalized_shape, weight, None, eps, kept, False)
    return None if found is None else (found[0], found[2])


def _normalised(
    input: DeviceArray, inner: tuple[int, ...], weight: Any, bias: Any, eps: float, kept: np.dtype[Any], centre: bool
) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:
    form = input.form
    given = weight if weight is not None else bias
    parameters = form.dtype if given is None else given.dtype
    if not form.size or not {name_of(form.dtype), name_of(parameters), name_of(kept)} <= _FLOATS:
        return None
    if weight is not None and bias is not None and weight.dtype != bias.dtype:
        return None
    input = _dense(input)
    shape = form.shape[: form.ndim - len(inner)] + (1,) * len(inner)
    mean, rstd, made = empty(shape, kept), empty(shape, kept), empty(form.shape, form.dtype)
    rows = rstd.form.size
    length = form.size // rows
    across = _across(length, True)
    weight, bias = (None if each is None else _dense(each) for each in (weight, bias))
    fields = Struct("=qqQQQQQQdq").pack(
        rows, length, input.pointer, made.pointer, mean.pointer, rstd.pointer, 0 if weight is None else weight.pointer,
        0 if bias is None else bias.pointer, eps, across,
    )  # fmt: skip
    names = name_of(form.dtype), name_of(parameters), name_of(kept)
    _start(_kernel(norm_source, *names, weight is not None, bias is not None, centre), rows, across, fields)
    return made, mean, rstd


def layer_norm_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any,
    bias: Any, mean: DeviceArray, rstd: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of input, weight and bias, those that are needed."""
    return _normalised_backward(grads, needed, input, normalized_shape, weight, mean, rstd)


def rms_norm_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any,
    rstd: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of input and weight, those that are needed."""
    found = _normalised_backward(grads, (*needed, False), input, normalized_shape, weight, None, rstd)
    return None if found is None else found[:2]


def _normalised_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, inner: tuple[int, ...], weight: Any, mean: Any,
    rstd: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    grad = grads[0]
    form, kept = input.form, rstd.form.dtype
    parameters = kept if weight is None else weight.dtype
    if grad is None or any(each is not None for each in grads[1:]) or grad.dtype != form.dtype or not form.size:
        return None
    if not {name_of(form.dtype), name_of(parameters), name_of(kept)} <= _FLOATS:
        return None
    input, grad, rstd = _dense(input), _dense(grad), _dense(rstd)
    mean = None if mean is None else _dense(mean)
    centre = 0 if mean is None else mean.pointer
    rows = rstd.form.size
    length = form.size // rows
    results: list[Any] = [None, None, None]
    if needed[0]:
        results[0] = empty(form.shape, form.dtype)
        across = _across(length, True)
        scale = None if weight is None else _dense(weight)
        fields = Struct("=qqQQQQQQq").pack(
            rows, length, grad.pointer, input.pointer, results[0].pointer, centre, rstd.pointer,
            0 if scale is None else scale.pointer, across,
        )  # fmt: skip
        names = name_of(form.dtype), name_of(parameters), name_of(kept)
        _start(_kernel(norm_backward_source, *names, weight is not None, mean is not None), rows, across, fields)
    if needed[1] or needed[2]:
        threads = driver().block_threads(THREADS)
        across = min(threads, 32)
        blocks = -(-length // across)
        splits = max(1, min(-(-_ENOUGH_BLOCKS // blocks), -(-rows // (threads // across * 4))))
        part = -(-rows // splits)
        splits = -(-rows // part)
        wide = np.dtype(np.float64 if name_of(form.dtype) == "float64" else np.float32)
        sums = [empty((splits, length), wide) for _ in range(2)]
        fields = Struct("=qqQQQQQQqqq").pack(
            rows, length, grad.pointer, input.pointer, sums[0].pointer, sums[1].pointer, centre, rstd.pointer, across,
            blocks, part,
        )  # fmt: skip
        launch = _kernel(norm_parameters_source, name_of(form.dtype), name_of(kept), mean is not None)
        launch(blocks * splits, threads, fields)
        for number in (1, 2):
            if needed[number]:
                found = reduced("add", sums[number - 1], 0, parameters, False)
                assert found is not None
                results[number] = found.reshape(inner)
    return results
