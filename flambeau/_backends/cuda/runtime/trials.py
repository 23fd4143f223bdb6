"""Calls that compute the same, tried with numbers: which give the same bits, and which of these is the quickest.

Where results must not depend on the batch, a sum has one order. A library does not say in which order its kernels add
up: they are run beside one whose order is known, and taken if every bit is the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...._core.names.error_classes import OutOfMemoryError
from ..arrays.array import DeviceArray, empty, from_host, to_host
from .driver import driver
from .synchronization import DEFAULT, HERE, SYNCHRONIZATIONS

Call = Callable[..., None]
"""Computes, given the addresses of the result and of what it is computed from."""
Refusals = tuple[type[Exception], ...]

_SOME = (1 << 20) - 3
"""So many numbers are drawn; they come again and again in larger arrays, at other places in each row."""
_SCALES = 1.0, 2.0**-62, 2.0**-68, 2.0**-75
"""Products of the smaller numbers have fewer bits than others, of some or of all: kernels may take them for zero.

Those of the smallest are zero, of either sign, or the least number, and are added to zeros: kernels may lose the sign.
"""
_MOST_BYTES = 4 << 30
_MOST_TIMED, _REPETITIONS = 5, 3


class Buffers(NamedTuple):
    """What calls are tried with: the dtype of all numbers, and how many of them the result has and each operand."""

    dtype: Any
    result: int
    operands: tuple[int, ...]


def quickest_alike(buffers: Buffers, reference: Call, others: Iterable[Call], refusals: Refusals) -> Call | None:
    """The quickest of some calls that give the bits of `reference`, or this itself.

    A call that raises one of `refusals` is none of them. None: nothing can be tried now, because the device's work is
    written down, or there is no memory for it.
    """
    with _trying(buffers) as arrays:
        if arrays is None:
            return None
        found = [each for _, each in islice(_alike(arrays, reference, others, refusals), _MOST_TIMED)]
        return _quickest(arrays[1:], [reference, *found]) if found else reference


def first_alike(buffers: Buffers, reference: Call, others: Iterable[Call], refusals: Refusals) -> int | None:
    """The position of the first call that gives the bits of `reference`; None: none does, or nothing can be tried."""
    with _trying(buffers) as arrays:
        if arrays is None:
            return None
        return next((number for number, _ in _alike(arrays, reference, others, refusals)), None)


def count_alike(buffers: Buffers, reference: Call, others: Iterable[Call], refusals: Refusals) -> int:
    """How many calls give the bits of `reference`."""
    with _trying(buffers) as arrays:
        return 0 if arrays is None else sum(1 for _ in _alike(arrays, reference, others, refusals))


@contextlib.contextmanager
def _trying(buffers: Buffers) -> Iterator[list[DeviceArray] | None]:
    """Arrays for a result that is right, another one, and the operands."""
    sizes = buffers.result, buffers.result, *buffers.operands
    if HERE.recording is not None or sum(sizes) * buffers.dtype.itemsize > _MOST_BYTES:
        yield None
        return
    arrays: list[DeviceArray] | None = None
    with contextlib.suppress(OutOfMemoryError):
        arrays = [empty((size,), buffers.dtype) for size in sizes]
    before, SYNCHRONIZATIONS.mode = SYNCHRONIZATIONS.mode, DEFAULT  # it is no step of the program's
    try:
        yield arrays
    finally:
        SYNCHRONIZATIONS.mode = before


def _alike(
    arrays: list[DeviceArray], reference: Call, others: Iterable[Call], refusals: Refusals
) -> Iterator[tuple[int, Call]]:
    """The calls whose results have the bits of `reference`, with their positions."""
    wanted, result, *operands = arrays
    for number, other in enumerate(others):
        try:
            same = all(_agree(wanted, result, operands, reference, other, scale) for scale in _SCALES)
        except refusals:
            continue
        if same:
            yield number, other


def _agree(
    wanted: Any, result: Any, operands: Sequence[DeviceArray], reference: Call, other: Call, scale: float
) -> bool:
    for each in (wanted, result):
        _fill(each, scale if scale > _SCALES[-1] else 0.0, 0)
    for number, each in enumerate(operands, 1):
        _fill(each, scale, number)
    reference(wanted.pointer, *[each.pointer for each in operands])
    other(result.pointer, *[each.pointer for each in operands])
    bits = np.dtype(f"i{wanted.dtype.itemsize}")
    differ: Any = np.not_equal(wanted.view(bits), result.view(bits))
    return not to_host(differ.any())


@cache
def _numbers(dtype: Any, scale: float) -> Any:
    found = np.random.default_rng(0).standard_normal(_SOME, np.float32) * np.float32(scale)
    return found.astype(dtype)


def _fill(array: DeviceArray, scale: float, seed: int) -> None:
    """Numbers from a normal distribution, others for each seed."""
    numbers = np.roll(_numbers(array.dtype, scale), 7919 * seed)
    given, size, item = from_host(numbers), array.form.size, array.dtype.itemsize
    for begin in range(0, size, _SOME):
        driver().copy(array.pointer + begin * item, given.pointer, min(_SOME, size - begin) * item)


def _quickest(arrays: Sequence[DeviceArray], calls: list[Call]) -> Call:
    addresses = [each.pointer for each in arrays]
    events, times = driver().library, []
    for call in calls:
        begin, end = events.Event(), events.Event()
        call(*addresses)
        begin.record()
        for _ in range(_REPETITIONS):
            call(*addresses)
        end.record()
        end.synchronize()
        times.append(events.get_elapsed_time(begin, end))
    return calls[times.index(min(times))]
