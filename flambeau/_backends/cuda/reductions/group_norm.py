"""Normalisation of groups of channels on the device, forward and backward. None: the reference runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.group_norm import forward_source, input_gradient_source, parameter_gradients_source
from ...._core.arrays.quick import name_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, dense, empty, form_of, of_form
from ..runtime.driver import Launch, driver
from ..runtime.plans import of_level

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_LONGEST = 1 << 31
"""Groups are counted in 32 bits."""
_FEWEST, _MOST = 32, 512
"""Threads of a block."""
_MOST_CALLS = 4096
_FORWARD = Struct("=qqqdQQQQQQ").pack
_OF_INPUT = Struct("=qqqQQQQQQ").pack
_OF_PARAMETERS = Struct("=qqqqQQQQQQ").pack


class _Call(NamedTuple):
    """What a call for arrays of some sizes and types needs."""

    form: Any
    """Of the result, row by row."""
    statistics: Any
    """The form of the means, and of the deviations."""
    parameters: Any
    """The form of a parameter's gradient."""
    sizes: tuple[int, int, int]
    """Groups, the channels of one, the places of a channel."""
    rows: int
    threads: int
    launch: Launch
    of_parameters: Launch | None
    threads_of_parameters: int


_calls: dict[Any, _Call | None] = of_level({})
_backward_calls: dict[Any, _Call | None] = of_level({})


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Launch:
    return driver().compile(make(*parameters))


def group_norm(
    input: DeviceArray, weight: Any, bias: Any, samples: int, channels: int, places: int, groups: int, eps: float,
    kept: np.dtype[Any],
) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:  # fmt: skip
    """The result, in the memory order of the input, the means and 1 / deviations."""
    form, given = input.form, dense(input)
    of_weight = of_bias = 0
    one = two = None
    if weight is not None:
        weight = dense(weight)
        of_weight, one = weight.pointer, weight.form.dtype
    if bias is not None:
        bias = dense(bias)
        of_bias, two = bias.pointer, bias.form.dtype
    key = form.shape, form.dtype, channels, groups, one, two, kept, given.pointer % 16
    try:
        call = _calls[key]
    except KeyError:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        parameters = next((each for each in (one, two) if each is not None), kept)
        fits = one is None or two is None or one == two
        sizes, flags = (samples, channels, places, groups), (one is not None, two is not None)
        types = form.dtype, parameters, kept
        call = _prepared(form.shape, sizes, types, forward_source, flags, not key[-1], False) if fits else None
        _calls[key] = call
    if call is None:
        return None
    made, mean, rstd = of_form(call.form), of_form(call.statistics), of_form(call.statistics)
    places_of = given.pointer, of_weight, of_bias, mean.pointer, rstd.pointer, made.pointer
    call.launch(call.rows, call.threads, _FORWARD(*call.sizes, eps, *places_of))
    return _as_it_lay(made, form), mean, rstd


def group_norm_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, weight: Any, samples: int, channels: int,
    places: int, groups: int, eps: float, mean: DeviceArray, rstd: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of input, weight and bias, those that are needed."""
    grad, *others = grads
    if grad is None or any(each is not None for each in others) or grad.form.dtype != input.form.dtype:
        return None
    form, grad, given = input.form, dense(grad), dense(input)
    mean, rstd = dense(mean), dense(rstd)
    scale, one = 0, None
    if weight is not None:
        weight = dense(weight)
        scale, one = weight.pointer, weight.form.dtype
    key = (
        form.shape, form.dtype, channels, groups, one, rstd.form.dtype, needed,
        (grad.pointer | given.pointer) % 16,
    )  # fmt: skip
    try:
        call = _backward_calls[key]
    except KeyError:
        if len(_backward_calls) >= _MOST_CALLS:
            _backward_calls.clear()
        parameters = mean.form.dtype if one is None else one  # statistics are kept in the dtype of parameters
        fits = mean.form.dtype == rstd.form.dtype
        sizes, flags = (samples, channels, places, groups), (one is not None,)
        types, summed = (form.dtype, parameters, rstd.form.dtype), needed[1] or needed[2]
        call = _prepared(form.shape, sizes, types, input_gradient_source, flags, not key[-1], summed) if fits else None
        _backward_calls[key] = call
    if call is None:
        return None
    results: list[Any] = [None, None, None]
    read = grad.pointer, given.pointer
    kept = mean.pointer, rstd.pointer
    if needed[0]:
        made = of_form(call.form)
        call.launch(call.rows, call.threads, _OF_INPUT(*call.sizes, *read, scale, *kept, made.pointer))
        results[0] = _as_it_lay(made, form)
    if call.of_parameters is not None:
        targets = [0, 0]
        for number in (1, 2):
            if needed[number]:
                results[number] = of_form(call.parameters)
                targets[number - 1] = results[number].pointer
        fields = _OF_PARAMETERS(*call.sizes, samples, *read, *kept, *targets)
        call.of_parameters(channels, call.threads_of_parameters, fields)
    return results


def _prepared(
    shape: tuple[int, ...], sizes: tuple[int, int, int, int], types: tuple[Any, Any, Any], make: Callable[..., str],
    flags: tuple[bool, ...], aligned: bool, summed: bool,
) -> _Call | None:  # fmt: skip
    """The call for arrays of a shape, whose sizes are those of samples, channels, places and groups.

    The types are those of elements, parameters and statistics; `summed`: gradients of parameters are wanted.
    """
    samples, channels, places, groups = sizes
    dtype, parameters, kept = types
    names = tuple([name_of(each) for each in types])
    form, size = form_of(shape, dtype), channels // groups
    if not form.size or not set(names) <= _FLOATS or max(size, samples) * places >= _LONGEST:
        return None
    width = 16 // dtype.itemsize
    if not aligned or places % width or REPRODUCIBILITY.product is not None:  # samples may begin anywhere
        width = 1
    threads, over_samples = _threads_for(size * places // width), _threads_for(samples * places // width)
    return _Call(
        form,
        form_of((samples, groups), kept),
        form_of((channels,), parameters),
        (groups, size, places),
        samples * groups,
        threads,
        _kernel(make, *names, *flags, width, threads),
        _kernel(parameter_gradients_source, *names, width, over_samples) if summed else None,
        over_samples,
    )


def _threads_for(packs: int) -> int:
    """A power of two, with some packs for each thread where there are many."""
    threads = _FEWEST
    while threads < min(packs // 2, _MOST):
        threads *= 2
    return driver().block_threads(threads)


def _as_it_lay(made: DeviceArray, form: Any) -> DeviceArray:
    """An array, in the memory order of another one's form."""
    if form.flags.c_contiguous:
        return made
    moved = empty(form.shape, form.dtype, form.strides)
    moved[...] = made
    return moved
