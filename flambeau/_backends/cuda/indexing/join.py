"""Arrays side by side in one launch. None: no kernel fits, and the reference runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from ...._codegen.cuda.join import THREADS, join_source
from ...._core.geometry.layout import is_channels_last
from ..arrays.array import DeviceArray, form_of, of_form
from ..runtime.driver import Launch, driver

_MOST_ARRAYS, _MOST_DIMENSIONS = 32, 6
"""What a kernel is told has at most 4096 bytes."""
_PACKS = (16, 8, 4, 2, 1)
_MOST_CALLS = 1024


class _Call(NamedTuple):
    """A launch that needs no preparation when its like comes again."""

    form: Any
    """Of the result: arrays share it."""
    launch: Launch
    blocks: int
    pack: Callable[..., bytes]
    before: tuple[int, ...]
    """What the kernel is told about the result, behind its address; the number of its packs is first."""
    sources: tuple[tuple[int, ...], ...]
    """What it is told about each array, behind the address."""


_calls: dict[Any, _Call | None] = {}


def cat(tensors: list[DeviceArray], dim: int, dtype: Any) -> DeviceArray | None:
    """Lowering of `cat`: arrays joined along a dimension."""
    arrays = [each for each in tensors if each.form.shape != (0,)]
    return _joined(arrays, dim, dtype, False) if 0 < len(arrays) <= _MOST_ARRAYS else None


def stack(tensors: list[DeviceArray], dim: int, dtype: Any) -> DeviceArray | None:
    """Lowering of `stack`: arrays joined along a new dimension."""
    return _joined(tensors, dim, dtype, True) if 1 < len(tensors) <= _MOST_ARRAYS else None


def _joined(arrays: list[DeviceArray], dim: int, dtype: Any, stacked: bool) -> DeviceArray | None:
    """`stacked`: along a new dimension."""
    layout: list[Any] = [dim, dtype, stacked]
    together = 0
    for each in arrays:
        form = each.form
        layout += form.shape, form.strides, form.dtype
        together |= each.pointer
    key = *layout, together & 15
    try:
        call = _calls[key]
    except KeyError:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        forms = [each.form for each in arrays]
        if stacked:
            forms = [form[(*[slice(None)] * dim, None)] for form in forms]
        call = _calls[key] = _prepared(forms, dim, dtype.numpy, together)
    if call is None:
        return None
    made = of_form(call.form)
    values = [call.before[0], made.pointer, *call.before[1:]]
    for array, source in zip(arrays, call.sources, strict=True):
        values.append(array.pointer)
        values += source
    call.launch(call.blocks, THREADS, call.pack(*values))
    return made


def _prepared(forms: Sequence[Any], dim: int, dtype: Any, together: int) -> _Call | None:
    """`together`: all addresses, ored."""
    first = forms[0]
    axis = dim + first.ndim if dim < 0 else dim
    others = [(*form.shape[:axis], *form.shape[axis + 1 :]) for form in forms]
    if any(form.ndim != first.ndim or form.dtype != dtype or not form.size for form in forms) or len(set(others)) > 1:
        return None
    shape = (*first.shape[:axis], sum([form.shape[axis] for form in forms]), *first.shape[axis + 1 :])
    strides = None
    if all(is_channels_last(form) for form in forms):
        order = (0, *range(2, first.ndim), 1)
        strides = _strides_in_order(shape, order, dtype.itemsize)
        forms, axis = [form.transpose(order) for form in forms], order.index(axis)
    form = form_of(shape, dtype, strides)
    sizes, steps, axis = _collapsed(forms, axis)
    size = next(each for each in _PACKS if _moves_by(each, dtype.itemsize, sizes, steps, together))
    last = len(steps[0]) - 1
    if size != dtype.itemsize:  # the last dimension in packs
        sizes = [[*each[:-1], each[-1] * dtype.itemsize // size] for each in sizes]
        steps = [[*each[:-1], size] for each in steps]
    if last >= _MOST_DIMENSIONS:
        return None
    whole = [*sizes[0]]
    whole[axis] = sum([each[axis] for each in sizes])
    sources, begin = [], 0
    for each, own in zip(sizes, steps, strict=True):
        sources.append((begin, begin + each[axis], *own))
        begin += each[axis]
    count = form.nbytes // size
    launch, pack = _kernel(size, len(forms), len(whole), axis, count >= 1 << 31)
    return _Call(form, launch, -(-count // THREADS), pack, (count, *whole), tuple(sources))


@cache
def _kernel(size: int, arrays: int, dimensions: int, axis: int, wide: bool) -> tuple[Launch, Callable[..., bytes]]:
    layout = Struct(f"=qQ{'q' * dimensions}" + f"Qqq{'q' * dimensions}" * arrays)
    return driver().compile(join_source(size, arrays, dimensions, axis, wide)), layout.pack


def _strides_in_order(shape: tuple[int, ...], order: tuple[int, ...], step: int) -> tuple[int, ...]:
    strides = [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def _collapsed(forms: Sequence[Any], axis: int) -> tuple[list[list[int]], list[list[int]], int]:
    """Sizes and strides of arrays that meet along `axis` in the fewest dimensions, and which of these that is."""
    sizes: list[list[int]] = [[] for _ in forms]
    steps: list[list[int]] = [[] for _ in forms]
    at = 0
    for dim in range(forms[0].ndim):
        joins = bool(sizes[0]) and dim != axis
        if joins and all(
            own[-1] == form.strides[dim] * form.shape[dim] for own, form in zip(steps, forms, strict=True)
        ):
            for size, own, form in zip(sizes, steps, forms, strict=True):
                size[-1] *= form.shape[dim]
                own[-1] = form.strides[dim]
            continue
        if dim == axis:
            at = len(sizes[0])
        for size, own, form in zip(sizes, steps, forms, strict=True):
            size.append(form.shape[dim])
            own.append(form.strides[dim])
    return sizes, steps, at


def _moves_by(pack: int, item: int, sizes: list[list[int]], steps: list[list[int]], together: int) -> bool:
    """Whether arrays can be read by so many bytes along their last dimension."""
    if pack == item:
        return True
    if pack < item or together % pack:
        return False
    return all(
        own[-1] == item and size[-1] * item % pack == 0 and not any(step % pack for step in own[:-1])
        for size, own in zip(sizes, steps, strict=True)
    )
