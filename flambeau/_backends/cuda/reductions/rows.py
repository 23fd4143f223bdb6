"""softmax and normalisations of rows on the device. None: no kernel fits, and the reference runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.rows import LONGEST, WARP, Layout, column_slots, rows_source
from ...._codegen.cuda.types import TYPES
from ...._codegen.row_program import COLUMN, ROW, RowProgram
from ...._codegen.rows import programs
from ...._core.arrays.quick import name_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, Together, dense, empty, form_of, of_form, of_forms, together
from ..runtime.any_gpu import resident_threads
from ..runtime.driver import driver
from ..runtime.plans import of_level
from .reduce import reduced

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_SINGLE = np.dtype(np.float32)


# ----- how rows are divided -------------------------------------------------------------------------------------------

_REGISTERS = 32
"""So many registers of a thread may hold elements of its row."""
_MOST_THREADS = 1024
_LANES = 256
"""So many threads share a row of any length at `reproducible("batch")`."""
_WIDE, _REGISTERS_OF_MANY = 512, 16
"""Of blocks with more threads than the first of these, so many."""


class _Plan(NamedTuple):
    """A kernel that is ready for rows of one size."""

    launch: Any
    blocks: int
    threads: int
    pack: Callable[..., bytes]
    names: tuple[str, ...]
    slots: int
    """How many rows the places have that take what is added up over rows."""


@of_level
@lru_cache(maxsize=4096)
def _plan(
    describe: Callable[..., RowProgram], flags: tuple[Any, ...], rows: int, length: int, side: int, aligned: bool
) -> _Plan:
    program = describe(*flags)
    if side > 1:
        layout = _strided(length)
    elif REPRODUCIBILITY.product is None:
        layout = _layout(program, length, aligned)
    else:
        layout = _layout_in_any_batch(length)
    threads = layout.along * layout.across
    blocks = -(-rows // layout.across)
    if program.stores_to(COLUMN):
        blocks = min(blocks, max(1, resident_threads() // (2 * threads)))
    return _Plan(
        _compiled(describe, flags, layout),
        blocks,
        threads,
        Struct(f"=qqq{len(program.places)}Q{program.numbers()}d").pack,
        tuple(place.name for place in program.places),
        column_slots(layout, blocks),
    )


@cache
def _compiled(describe: Callable[..., RowProgram], flags: tuple[Any, ...], layout: Layout) -> Any:
    return driver().compile(rows_source(describe(*flags), layout))


def _strided(length: int) -> Layout:
    """Rows side by side: 32 neighbours of them in a block, each by eight threads."""
    if driver().block_threads(_MOST_THREADS) == 1:
        return Layout(1, 0, 1, 1, strided=True)
    packs = -(-length // 8)
    return Layout(1, packs if packs <= 16 else 0, 8, 32, strided=True)


def _layout(program: RowProgram, length: int, aligned: bool) -> Layout:
    """Rows one after the other: as few threads for a row as can keep it in registers."""
    sums = program.stores_to(COLUMN)
    added = {place for place, _ in sums}
    packed = [place for number, place in enumerate(program.places) if place.has != ROW and number not in added]
    width = 16 // max(TYPES[place.dtype].size for place in packed) if aligned else 1
    shifted = bool(length % width)
    if shifted and (sums or length < 8 * width):
        width, shifted = 1, False
    chunks = -(-(length + (width - 1 if shifted else 0)) // width)
    if driver().block_threads(_MOST_THREADS) == 1:
        return Layout(width, 0, 1, 1, shifted=shifted)
    read = {step[2] for step in program.steps if step[0] == "load"}
    words = sum(-(-TYPES[program.places[n].dtype].size * width // 4) for n in read if program.places[n].has != ROW)
    most = max(1, _REGISTERS // (words + len(sums) * width))
    if chunks <= WARP * most:
        along = 1
        while along < min(chunks, WARP):
            along *= 2
        return Layout(width, -(-chunks // along), along, 4 * WARP // along, shifted=shifted)
    for packs in range(1, most + 1):
        along = -(-chunks // (packs * WARP)) * WARP
        if along > _WIDE and packs * words > _REGISTERS_OF_MANY:
            break  # one such block would fill a multiprocessor: reading again from the cache is quicker
        if along <= min(256 * packs, _MOST_THREADS) or (packs == most and along <= _MOST_THREADS):
            together = 384 if sums else 128
            return Layout(width, packs, along, max(1, together // along), shifted=shifted)
    return Layout(width, 0, _MOST_THREADS, 1, shifted=shifted)


def _layout_in_any_batch(length: int) -> Layout:
    """Rows whose sums depend neither on where they lie nor on zeros behind them: element `i` is that of one thread."""
    if driver().block_threads(_MOST_THREADS) == 1:
        return Layout(1, 0, 1, 1)
    along = 1
    while along < min(length, WARP):
        along *= 2
    if length > WARP:
        along = min(-(-length // WARP) * WARP, _LANES)
    packs = -(-length // along)
    return Layout(1, packs if packs <= _REGISTERS // 2 else 0, along, max(1, 4 * WARP // along))


def _start(plan: _Plan, rows: int, length: int, side: int, places: dict[str, int], *numbers: float) -> None:
    pointers = [places[name] for name in plan.names]
    plan.launch(plan.blocks, plan.threads, plan.pack(rows, length, side, *pointers, *numbers))


# ----- softmax --------------------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """A softmax that needs no preparation when its like comes again."""

    form: Any
    """Of the result: arrays share it."""
    plan: _Plan
    sizes: tuple[int, int, int]
    reads_first: bool
    """Whether the kernel is told first where the array is, or where the result is."""


_calls: dict[Any, _Call | None] = of_level({})
_MOST_CALLS = 4096


def _forward(logarithm: bool, safe: bool = False) -> Callable[[DeviceArray, int], DeviceArray | None]:
    def run(x: DeviceArray, dim: int) -> DeviceArray | None:
        key = logarithm, safe, x.layout, dim, x.pointer % 16
        try:
            call = _calls[key]
        except KeyError:
            if len(_calls) >= _MOST_CALLS:
                _calls.clear()
            call = _calls[key] = _prepared_softmax((logarithm, None, safe), x.form, dim, not x.pointer % 16)
        if call is None:
            return None
        x = dense(x)
        made = of_form(call.form)
        places = (x.pointer, made.pointer) if call.reads_first else (made.pointer, x.pointer)
        plan = call.plan
        plan.launch(plan.blocks, plan.threads, plan.pack(*call.sizes, *places))
        return made

    return run


def _prepared_softmax(flags: tuple[Any, ...], form: Any, dim: int, aligned: bool) -> _Call | None:
    shape, dtype = form.shape, form.dtype
    if not form.size or not shape or name_of(dtype) not in _FLOATS or shape[dim] > LONGEST:
        return None
    side = math.prod(shape[dim + 1 :]) if dim != -1 else 1
    length = shape[dim]
    rows = form.size // length
    aligned = aligned or not form.flags.c_contiguous  # a copy is
    plan = _plan(programs.softmax, (name_of(dtype), *flags), rows, length, side, aligned)
    return _Call(form_of(shape, dtype), plan, (rows, length, side), plan.names[0] == "x")


def _backward(logarithm: bool) -> Callable[[DeviceArray, DeviceArray, int], DeviceArray | None]:
    def run(grad: DeviceArray, result: DeviceArray, dim: int) -> DeviceArray | None:
        shape, dtype = grad.form.shape, grad.form.dtype
        if not grad.form.size or not shape or name_of(dtype) not in _FLOATS or result.form.dtype != dtype:
            return None
        if result.form.shape != shape or shape[dim] > LONGEST:
            return None
        grad, result = dense(grad), dense(result)
        side = math.prod(shape[dim + 1 :]) if dim != -1 else 1
        length = shape[dim]
        rows, made = grad.form.size // length, empty(shape, dtype)
        aligned = not (grad.pointer | result.pointer | made.pointer) % 16
        plan = _plan(programs.softmax_backward, (name_of(dtype), logarithm), rows, length, side, aligned)
        places = {"grad": grad.pointer, "result": result.pointer, "of_x": made.pointer}
        _start(plan, rows, length, side, places)
        return made

    return run


softmax, log_softmax = _forward(False), _forward(True)
safe_softmax = _forward(False, safe=True)
softmax_backward, log_softmax_backward = _backward(False), _backward(True)


# ----- normalisations -------------------------------------------------------------------------------------------------


def layer_norm(
    input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float, kept: np.dtype[Any]
) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:
    """The result, the means and 1 / deviations over the last dimensions, which these keep with size 1."""
    if kept.itemsize == 2:
        kept = np.dtype(np.float32)  # as PyTorch keeps them on a GPU: the derivative is the better for it
    return _normalised(input, normalized_shape, weight, bias, eps, kept, True)


def rms_norm(
    input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any, eps: float
) -> tuple[DeviceArray, DeviceArray] | None:
    """The result and 1 / roots of the mean squares over the last dimensions, which these keep with size 1."""
    kept = np.dtype(np.float64 if name_of(input.form.dtype) == "float64" else np.float32)
    found = _normalised(input, normalized_shape, weight, None, eps, kept, False)
    return None if found is None else (found[0], found[2])


def norm_alone(
    input: DeviceArray, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float, centre: bool
) -> DeviceArray | None:
    """The result of `layer_norm`, or without `centre` of `rms_norm`, for those who do not differentiate."""
    found = _normalised(input, normalized_shape, weight, bias, eps, None, centre)
    return None if found is None else found[0]


class _NormCall(NamedTuple):
    """A normalisation that needs no preparation when its like comes again."""

    form: Any
    """Of the result: arrays share it."""
    statistics: Together | None
    """Of deviations, and of means where there are any, likewise; None: they are not kept."""
    plan: _Plan
    sizes: tuple[int, int, int]
    order: Callable[[tuple[int, ...]], tuple[int, ...]]
    """Takes the addresses that the kernel is told out of those of input, result, deviations, means, weight, bias."""


_norm_calls: dict[Any, _NormCall | None] = of_level({})
_NORM_PLACES = ("x", "out", "rstd", "mean", "weight", "bias")


def _normalised(
    input: DeviceArray, inner: tuple[int, ...], weight: Any, bias: Any, eps: float, kept: np.dtype[Any] | None,
    centre: bool,
) -> tuple[DeviceArray, Any, Any] | None:  # fmt: skip
    """The result, means and 1 / deviations, these of the type `kept` or not at all."""
    if not input.form.flags.c_contiguous:
        input = input.copy()
    form, of_input = input.form, input.pointer
    of_weight = of_bias = 0
    one = two = None
    if weight is not None:
        weight = dense(weight)
        of_weight, one = weight.pointer, weight.form.dtype
    if bias is not None:
        bias = dense(bias)
        of_bias, two = bias.pointer, bias.form.dtype
    key = form.shape, form.dtype, inner, one, two, kept, centre, not (of_weight | of_bias | of_input) % 16
    try:
        call = _norm_calls[key]
    except KeyError:
        if len(_norm_calls) >= _MOST_CALLS:
            _norm_calls.clear()
        call = _norm_calls[key] = _prepared_norm(*key)
    if call is None:
        return None
    made = of_form(call.form)
    rstd = mean = None
    of_rstd = of_mean = 0
    if call.statistics is not None:
        statistics = of_forms(call.statistics)
        rstd, mean = statistics[0], statistics[-1]
        of_rstd, of_mean = rstd.pointer, mean.pointer
    places = of_input, made.pointer, of_rstd, of_mean, of_weight, of_bias
    plan = call.plan
    plan.launch(plan.blocks, plan.threads, plan.pack(*call.sizes, *call.order(places), eps))
    return made, mean, rstd


def _prepared_norm(
    shape: tuple[int, ...], dtype: np.dtype[Any], inner: tuple[int, ...], weight: np.dtype[Any] | None,
    bias: np.dtype[Any] | None, kept: np.dtype[Any] | None, centre: bool, aligned: bool,
) -> _NormCall | None:  # fmt: skip
    form = form_of(shape, dtype)
    given = [each for each in (weight, bias) if each is not None]
    parameters = given[0] if given else dtype
    alone, kept = kept is None, _SINGLE if kept is None else kept
    if not form.size or not {name_of(dtype), name_of(parameters), name_of(kept)} <= _FLOATS or len(set(given)) > 1:
        return None
    statistics = form_of(shape[: len(shape) - len(inner)] + (1,) * len(inner), kept)
    rows = statistics.size
    length = form.size // rows
    if length > LONGEST:
        return None
    types = name_of(dtype), name_of(parameters), name_of(kept)
    flags = *types, weight is not None, bias is not None, centre, None, alone
    plan = _plan(programs.norm, flags, rows, length, 1, aligned)
    order = itemgetter(*map(_NORM_PLACES.index, plan.names))
    kept_with_it = None if alone else together(*[statistics] * (1 + centre))
    return _NormCall(form, kept_with_it, plan, (rows, length, 1), order)


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


class _NormBackwardCall(NamedTuple):
    """The derivative of a normalisation that needs no preparation when its like comes again."""

    form: Any
    """Of the gradient of the input."""
    sums: Together
    """Of what is added up over rows, in parts: for weight and bias, where one of them is wanted."""
    parameters: np.dtype[Any]
    plan: _Plan
    sizes: tuple[int, int, int]
    order: Callable[[tuple[int, ...]], tuple[int, ...]]
    """Takes the addresses that the kernel is told out of those of `_BACKWARD_PLACES`."""


_backward_calls: dict[Any, _NormBackwardCall | None] = of_level({})
_BACKWARD_PLACES = ("grad", "x", "rstd", "mean", "weight", "of_x", "of_weight", "of_bias")


def _normalised_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, inner: tuple[int, ...], weight: Any, mean: Any,
    rstd: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    grad = grads[0]
    if grad is None:
        return None
    for other in grads[1:]:
        if other is not None:
            return None
    input, grad, rstd = dense(input), dense(grad), dense(rstd)
    form, dy, x, scale, centre = input.form, grad.pointer, input.pointer, 0, 0
    if mean is not None:
        mean = dense(mean)
        centre = mean.pointer
    if weight is not None and needed[0]:
        weight = dense(weight)
        scale = weight.pointer
    key = (
        form.shape, form.dtype, grad.form.dtype, rstd.form.size, rstd.form.dtype,
        None if weight is None else weight.form.dtype, mean is not None, needed, not (dy | x | scale) % 16,
    )  # fmt: skip
    try:
        call = _backward_calls[key]
    except KeyError:
        if len(_backward_calls) >= _MOST_CALLS:
            _backward_calls.clear()
        call = _backward_calls[key] = _prepared_backward(*key)
    if call is None:
        return None
    results: list[Any] = [of_form(call.form) if needed[0] else None, None, None]
    sums = of_forms(call.sums) if call.sums.parts else []
    places = [dy, x, rstd.pointer, centre, scale, results[0].pointer if needed[0] else 0, 0, 0]
    for number, each in enumerate(sums, 6):
        places[number] = each.pointer
    plan = call.plan
    plan.launch(plan.blocks, plan.threads, plan.pack(*call.sizes, *call.order(tuple(places))))
    for number, each in enumerate(sums, 1):
        if needed[number]:
            found = reduced("add", each, 0, call.parameters, False)
            assert found is not None
            results[number] = found if len(inner) == 1 else found.reshape(inner)
    return results


def _prepared_backward(
    shape: tuple[int, ...], dtype: np.dtype[Any], grad: np.dtype[Any], rows: int, kept: np.dtype[Any],
    weight: np.dtype[Any] | None, centre: bool, needed: tuple[bool, ...], aligned: bool,
) -> _NormBackwardCall | None:  # fmt: skip
    form = form_of(shape, dtype)
    parameters = kept if weight is None else weight
    names = name_of(dtype), name_of(parameters), name_of(kept)
    if grad != dtype or not form.size or not set(names) <= _FLOATS or form.size // rows > LONGEST:
        return None
    length = form.size // rows
    summed = needed[1] or needed[2]
    flags = *names, weight is not None and needed[0], needed[0], summed, centre
    plan = _plan(programs.norm_backward, flags, rows, length, 1, aligned)
    part = form_of((plan.slots, length), np.dtype(np.float64 if names[0] == "float64" else np.float32))
    sums = together(*[part] * (1 + centre if summed else 0))
    order = itemgetter(*map(_BACKWARD_PLACES.index, plan.names))
    return _NormBackwardCall(form, sums, parameters, plan, (rows, length, 1), order)
