"""Batch normalisation on the device, forward and backward. None: no kernel fits, and the reference runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.channel_norm import (
    THREADS,
    Epilogue,
    lines_apply_source,
    lines_sums_source,
    planes_apply_source,
    planes_sums_source,
    running_source,
    slopes_source,
    statistics_source,
)
from ...._codegen.cuda.elementwise import can_write
from ...._codegen.expr import Program
from ...._core.arrays.abstract import empty_meta
from ...._core.arrays.quick import name_of
from ...._core.geometry.layout import is_channels_last
from ...._core.geometry.moving_windows import strides_for
from ..arrays.array import DeviceArray, dense, empty, form_of, of_form, of_forms, together
from ..memory.workspace import scratch
from ..runtime.driver import Launch, driver

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_ENOUGH_BLOCKS = 264
_MANY_BLOCKS = 1056
"""So many blocks keep the memory busy while they add up, and while they write."""
_PER_BLOCK = 8192
"""Elements of a plane for one block."""


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


class _Layout(NamedTuple):
    """How the channels of an array lie: `rows` lines of them, or of each sample planes of `places`."""

    lines: bool
    last: bool
    """Whether the channels are innermost by the array's strides."""
    channels: int
    rows: int
    places: int
    width: int


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> _Layout:
    samples, channels = shape[:2]
    wide = 16 // item
    places = math.prod(shape[2:])
    last = is_channels_last(empty_meta(shape, np.dtype(f"u{item}"), strides))
    if last or places == 1:
        return _Layout(True, last, channels, samples * places, 1, wide if channels % wide == 0 else 1)
    return _Layout(False, False, channels, samples, places, wide if places % wide == 0 else 1)


def _lies_so(form: Any, strides: tuple[int, ...] | None) -> bool:
    return bool(form.flags.c_contiguous if strides is None else form.strides == strides)


def _laid_out(array: DeviceArray, strides: tuple[int, ...] | None) -> DeviceArray:
    """The elements without gaps, row by row or with given strides, from a place on where packs may begin."""
    form = array.form
    if _lies_so(form, strides) and not array.pointer & 15:
        return array
    made = empty(form.shape, form.dtype, strides)
    made[...] = array
    return made


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float64 if name_of(dtype) == "float64" else np.float32)


def _shares(layout: _Layout, blocks_wanted: int, threads: int) -> tuple[int, int, int, int]:
    """Threads across the channels of a line, blocks across, how many lines a block has, how many parts that makes."""
    groups = layout.channels // layout.width
    across = min(threads, groups)
    blocks = -(-groups // across)
    most = -(-layout.rows // max(1, threads // across))
    splits = max(1, min(-(-blocks_wanted // blocks), most))
    part = -(-layout.rows // splits)
    return across, blocks, part, -(-layout.rows // part)


class _Passes:
    """Both passes over an array of some layout and what lies between them, ready to run.

    `gradient`: the array is read beside a gradient, whose sums and factors these are; `epilogue`: what else becomes of
    the elements.
    """

    def __init__(
        self, layout: _Layout, result: Any, kept: str, gradient: bool, summed: bool, epilogue: Epilogue | None
    ) -> None:
        """`result` is the form of the result, and of the array too."""
        name = name_of(result.dtype)
        self.layout = layout
        self.strides = result.strides if layout.last else None
        """Of the array and of the result; None: row by row."""
        self._result = result
        wide = 8 if name == "float64" else 4
        channels = layout.channels
        sizes = channels, layout.rows, layout.places
        threads = driver().block_threads(THREADS)
        self.splits = 0
        self._sum_numbers: tuple[int, ...] = ()
        self._apply_numbers: tuple[int, ...] = ()
        if summed and layout.lines:
            across, blocks, part, self.splits = _shares(layout, _ENOUGH_BLOCKS, threads)
            self._sums = _kernel(lines_sums_source, name, kept, layout.width, gradient)
            self._pack_sums, self._sum_numbers = Struct("=qqqQQQQqqq").pack, (across, blocks, part)
            self._sum_blocks = blocks * self.splits
        elif summed:
            splits = max(1, min(layout.rows, -(-_ENOUGH_BLOCKS // channels)))
            part = -(-layout.rows // splits)
            self.splits = -(-layout.rows // part)
            self._sums = _kernel(planes_sums_source, name, kept, layout.width, gradient)
            self._pack_sums, self._sum_numbers = Struct("=qqqQQQQq").pack, (part,)
            self._sum_blocks = channels * self.splits
        self._sizes, self.threads = sizes, threads
        self._results = 1 if epilogue is None else len(epilogue.program.results)
        self._plan_apply(name, gradient, epilogue)
        self.along = 1
        while self.along < min(self.splits, threads // 4):
            self.along *= 2
        across = threads // self.along
        self.parts = channels, self.splits, across
        """What a kernel is told in which several threads have a channel: as many as there are parts to add up."""
        self.channel_blocks = -(-channels // across)
        self.sum_bytes = self.splits * 2 * channels * wide
        self.nbytes = self.sum_bytes + 3 * channels * wide
        """Of the sums, and of the factors behind them."""

    def _plan_apply(self, name: str, gradient: bool, epilogue: Epilogue | None) -> None:
        layout = self.layout
        more = "Q" * (0 if epilogue is None else epilogue.others + self._results - 1)
        if layout.lines:
            across, blocks, part, splits = _shares(layout, _MANY_BLOCKS, THREADS)
            self._apply = _kernel(lines_apply_source, name, layout.width, gradient, epilogue)
            self._pack_apply, self._apply_numbers = Struct(f"=qqqQQQQqqq{more}").pack, (across, blocks, part)
            self._apply_blocks, self._apply_threads = blocks * splits, THREADS
        else:
            parts = -(-layout.places // _PER_BLOCK)
            part = -(-layout.places // parts)
            part += -part % layout.width
            self._apply = _kernel(planes_apply_source, name, layout.width, gradient, epilogue)
            self._pack_apply, self._apply_numbers = Struct(f"=qqqQQQQqq{more}").pack, (parts, part)
            self._apply_blocks = layout.rows * layout.channels * parts
            self._apply_threads = min(THREADS, 32 * -(-part // (32 * layout.width)))

    def add_up(self, x: int, grad: int, mean: int, sums: int) -> None:
        """For each part of the elements two sums of each channel."""
        fields = self._pack_sums(*self._sizes, x, grad, mean, sums, *self._sum_numbers)
        self._sums(self._sum_blocks, self.threads, fields)

    def apply(self, x: int, grad: int, factors: int) -> DeviceArray:
        """Every element by the factors of its channel."""
        made = of_form(self._result)
        fields = self._pack_apply(*self._sizes, x, grad, factors, made.pointer, *self._apply_numbers)
        self._apply(self._apply_blocks, self._apply_threads, fields)
        return made

    def apply_epilogue(self, x: DeviceArray, others: Sequence[DeviceArray], factors: int) -> list[DeviceArray]:
        """The results of the epilogue, of every element by the factors of its channel and the others at its place."""
        others = [_laid_out(each, self.strides) for each in others]
        made = [of_form(self._result) for _ in range(self._results)]
        more = [each.pointer for each in (*others, *made[1:])]
        fields = self._pack_apply(*self._sizes, x.pointer, 0, factors, made[0].pointer, *self._apply_numbers, *more)
        self._apply(self._apply_blocks, self._apply_threads, fields)
        return made


@lru_cache(1024)
def _passes(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], kept: str, gradient: bool, summed: bool,
    epilogue: Epilogue | None = None,
) -> _Passes:  # fmt: skip
    layout = _layout(shape, strides, dtype.itemsize)
    dense = tuple([step * dtype.itemsize for step in strides_for(shape, True)]) if layout.last else None
    return _Passes(layout, form_of(shape, dtype, dense), kept, gradient, summed, epilogue)


_STATISTICS, _SLOPES = Struct("=qqqddQQqQQQQQQ").pack, Struct("=qqqddQQQQQQQ").pack


class _Forward:
    """Batch normalisation of arrays of one layout, with parameters and statistics of given types."""

    __slots__ = ("_count", "_epilogue", "_launch", "_lies_well", "_nothing", "_passes", "_statistics", "_training",
                 "_variance")  # fmt: skip

    def __init__(
        self, form: Any, parameters: np.dtype[Any], kept: np.dtype[Any], weighted: bool, biased: bool, training: bool,
        epilogue: Epilogue | None,
    ) -> None:  # fmt: skip
        name, kind = name_of(form.dtype), name_of(kept)
        self._epilogue = epilogue
        self._passes = _passes(form.shape, form.strides, form.dtype, kind, False, training, epilogue)
        channels = self._passes.layout.channels
        self._count = float(form.size // channels)
        self._training = training
        self._lies_well = _lies_so(form, self._passes.strides)
        mean, self._variance = form_of((channels,), kept), form_of((channels,), _wide(form.dtype))
        self._statistics = together(mean, mean, self._variance)
        self._nothing = form_of((0,), kept)
        self._launch = _kernel(statistics_source, name, name_of(parameters), kind, weighted, biased, training)

    def __call__(
        self, input: DeviceArray, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float,
        *others: DeviceArray,
    ) -> tuple[DeviceArray, ...]:  # fmt: skip
        passes = self._passes
        if not self._lies_well or input.pointer & 15:
            input = _laid_out(input, passes.strides)
        x, of_weight, of_bias = input.pointer, 0, 0
        if weight is not None:
            weight = dense(weight)
            of_weight = weight.pointer
        if bias is not None:
            bias = dense(bias)
            of_bias = bias.pointer
        sums, memory = scratch(passes.nbytes, driver().queue())
        factors = sums + passes.sum_bytes
        if self._training:
            mean, rstd, variance = of_forms(self._statistics)
            passes.add_up(x, 0, 0, sums)
        else:
            mean, rstd, variance = dense(running_mean), dense(running_var), of_form(self._variance)
        fields = _STATISTICS(
            *passes.parts, self._count, eps, sums, x, passes.layout.places, of_weight, of_bias, mean.pointer,
            rstd.pointer, variance.pointer, factors,
        )  # fmt: skip
        self._launch(passes.channel_blocks, passes.threads, fields)
        if self._epilogue is None:
            results = [passes.apply(x, 0, factors)]
        else:
            results = passes.apply_epilogue(input, others, factors)
        del memory  # now the kernels that use it are in the queue
        if self._training:
            return (*results, mean, rstd, variance)
        return (*results, of_form(self._nothing), of_form(self._nothing), variance)


_calls: dict[Any, _Forward | None] = {}
_MOST_CALLS = 4096


def batch_norm(
    input: DeviceArray, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
    kept: np.dtype[Any],
) -> tuple[DeviceArray, ...] | None:  # fmt: skip
    """The result, then the mean and 1 / deviation that the derivative needs (of evaluation: nothing), the variance."""
    form = input.form
    key = (
        form.shape, form.strides, form.dtype, None if weight is None else weight.form.dtype,
        None if bias is None else bias.form.dtype, None if running_mean is None else running_mean.form.dtype,
        None if running_var is None else running_var.form.dtype, training, kept,
    )  # fmt: skip
    try:
        call = _calls[key]
    except KeyError:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        call = _calls[key] = _prepared(form, key[3:7], training, kept)
    return None if call is None else call(input, weight, bias, running_mean, running_var, eps)


def followed_by(program: Program, others: int, given: Sequence[Any]) -> Callable[..., Any] | None:
    """`batch_norm` for arguments like those given, and behind them other arrays, of which the results are those of a
    program of normalised elements and of these; None: there is no such kernel."""
    input, *statistics, training, _, kept = given
    if not can_write(program):
        return None
    types = tuple([None if each is None else each.form.dtype for each in statistics])
    call = _prepared(input.form, types, training, kept, Epilogue(program, others))
    if call is None:
        return None

    def run(
        input: DeviceArray, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
        kept: Any, *others: DeviceArray,
    ) -> tuple[DeviceArray, ...]:  # fmt: skip
        return call(input, weight, bias, running_mean, running_var, eps, *others)

    return run


def _prepared(
    form: Any, types: tuple[Any, ...], training: bool, kept: np.dtype[Any], epilogue: Epilogue | None = None
) -> _Forward | None:
    """`types` are those of weight, bias and running statistics."""
    weight, bias, running_mean, running_var = types
    wide = _wide(form.dtype)
    if kept.itemsize == 2:
        kept = wide  # as PyTorch keeps them on a GPU
    statistics = kept if training else running_mean
    parameters = next((each for each in (weight, bias) if each is not None), wide)
    if not _fits(form, parameters, statistics) or (not training and running_var != statistics):
        return None
    return _Forward(form, parameters, statistics, weight is not None, bias is not None, training, epilogue)


def _fits(form: Any, parameters: Any, statistics: Any) -> bool:
    return bool(
        form.size and form.ndim >= 2 and {name_of(form.dtype), name_of(parameters), name_of(statistics)} <= _FLOATS
    )


class _Backward:
    """The derivative for arrays of one layout, with parameters and statistics of given types."""

    __slots__ = ("_count", "_launch", "_lie_well", "_parameters", "_passes")

    def __init__(
        self, grad: Any, form: Any, parameters: np.dtype[Any], kept: np.dtype[Any], weighted: bool, training: bool
    ) -> None:
        name, kind = name_of(form.dtype), name_of(kept)
        passes = self._passes = _passes(form.shape, form.strides, form.dtype, kind, True, True)
        channels = passes.layout.channels
        self._count = float(form.size // channels)
        self._lie_well = _lies_so(form, passes.strides) and _lies_so(grad, passes.strides)
        self._parameters = form_of((channels,), parameters)
        self._launch = _kernel(slopes_source, name, name_of(parameters), kind, weighted, training)

    def __call__(
        self, grad: DeviceArray, needed: tuple[bool, ...], input: DeviceArray, weight: Any, mean: Any, rstd: Any,
        eps: float,
    ) -> list[Any]:  # fmt: skip
        passes = self._passes
        if not self._lie_well or (input.pointer | grad.pointer) & 15:
            input, grad = _laid_out(input, passes.strides), _laid_out(grad, passes.strides)
        x, dy = input.pointer, grad.pointer
        mean, rstd = dense(mean), dense(rstd)
        scale = 0
        if weight is not None:
            weight = dense(weight)
            scale = weight.pointer
        of_weight, of_bias = of_form(self._parameters), of_form(self._parameters)
        sums, memory = scratch(passes.nbytes, driver().queue())
        factors = sums + passes.sum_bytes
        passes.add_up(x, dy, mean.pointer, sums)
        fields = _SLOPES(
            *passes.parts, self._count, eps, sums, scale, mean.pointer, rstd.pointer, of_weight.pointer,
            of_bias.pointer, factors,
        )  # fmt: skip
        self._launch(passes.channel_blocks, passes.threads, fields)
        of_input = passes.apply(x, dy, factors) if needed[0] else None
        del memory  # now the kernels that use it are in the queue
        return [of_input, of_weight if needed[1] else None, of_bias if needed[2] else None]


_backward_calls: dict[Any, _Backward | None] = {}


def batch_norm_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, weight: Any, running_mean: Any, running_var: Any,
    training: bool, eps: float, result1: Any, result2: Any,
) -> list[Any] | None:  # fmt: skip
    """The gradients of input, weight and bias, those that are needed."""
    grad = grads[0]
    if grad is None:
        return None
    for other in grads[1:]:
        if other is not None:
            return None
    mean, rstd = (result1, result2) if training else (running_mean, running_var)
    form, given = input.form, grad.form
    key = (
        form.shape, form.strides, form.dtype, given.strides, given.dtype,
        None if weight is None else weight.form.dtype, mean.form.dtype, rstd.form.dtype, training,
    )  # fmt: skip
    try:
        call = _backward_calls[key]
    except KeyError:
        if len(_backward_calls) >= _MOST_CALLS:
            _backward_calls.clear()
        call = _backward_calls[key] = _prepared_backward(form, given, *key[5:])
    return None if call is None else call(grad, needed, input, weight, mean, rstd, eps)


def _prepared_backward(form: Any, grad: Any, weight: Any, mean: Any, rstd: Any, training: bool) -> _Backward | None:
    """`form` and `grad` are those of the input and of the gradient; the others are types."""
    parameters = mean if weight is None else weight
    if grad.dtype != form.dtype or rstd != mean or not _fits(form, parameters, mean):
        return None
    return _Backward(grad, form, parameters, mean, weight is not None, training)


_RUNNING = Struct("=qQQQQdd").pack
_movers: dict[Any, Launch | None] = {}
"""For the types and strides of the statistics the kernel that moves them; None: there is none."""


def move_running(
    running_mean: DeviceArray, running_var: DeviceArray, mean: DeviceArray, variance: DeviceArray, momentum: float,
    size: int,
) -> bool | None:  # fmt: skip
    """Move running statistics towards those of a batch of `size` elements; None: not done."""
    one, two, three, four = running_mean.form, running_var.form, mean.form, variance.form
    key = (
        one.strides, one.dtype, two.strides, two.dtype, three.strides, three.dtype, four.strides, four.dtype,
        four.size,
    )  # fmt: skip
    try:
        launch = _movers[key]
    except KeyError:
        if len(_movers) >= _MOST_CALLS:
            _movers.clear()
        launch = _movers[key] = _mover(one, two, three, four)
    if launch is None:
        return None
    channels = four.size
    count = size // channels
    factor = count / (count - 1) if count > 1 else float("nan")
    pointers = running_mean.pointer, running_var.pointer, mean.pointer, variance.pointer
    launch(-(-channels // THREADS), THREADS, _RUNNING(channels, *pointers, float(momentum), factor))
    return True


def _mover(*forms: Any) -> Launch | None:
    """The kernel that moves running statistics; `forms` are theirs, and those of what they move towards."""
    names = [name_of(form.dtype) for form in forms]
    if not set(names) <= _FLOATS or names[0] != names[1]:
        return None
    if not forms[3].size or not all(form.flags.c_contiguous for form in forms):
        return None
    launch: Launch = _kernel(running_source, names[0], *names[2:])
    return launch
