"""Padding: constant values, reflections, repeated edges, and circles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._backends.arrays import copy_into
from ...._core.arrays.room import ensure_room_like
from ...._core.backend import LARGE, backend_of_array, beside
from ...._core.dtype import BOOL
from ...._core.geometry.layout import empty_array, strides_like
from ...._core.geometry.moving_windows import Shape, new_array, suggests_channels_last
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FullIf, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.arguments.promotion import Number
from ...._dispatch.arguments.scalar import fitting, integer
from ...._dispatch.axes import Images, Last
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from .linear_maps import combined_places, take_combined

_MANY = 2**16
"""From so many elements on it pays to move the middle only once."""

Pads = tuple[int, ...]
"""Two amounts, before and after, for each dimension, from the last one backwards."""
Sources = Callable[[int, int, int], Any]
"""From a size and two amounts: where the elements of the padded dimension come from."""


def _check_length(pad: Pads, dims: int) -> None:
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(pad)} values: {list(pad)}")
    if len(pad) > 2 * dims:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {dims}"
        )


@functools.lru_cache(256)
def _amounts(pad: Pads, dims: int) -> tuple[tuple[int, int], ...]:
    """What is added before and after each dimension, from the first one on."""
    pairs = [(pad[place], pad[place + 1]) for place in range(0, len(pad), 2)]
    return (*[(0, 0)] * (dims - len(pairs)), *pairs[::-1])


def _new(shape: Shape, source: Any) -> Any:
    """Memory for the padded `source`, with the channels innermost where it has them there."""
    return new_array(shape, source.dtype, source.ndim in (4, 5) and suggests_channels_last(source), source)


# ----- constants ----------------------------------------------------------------------------------------------------


def _constant_pad_gradient(grad: Tensor, pad: Pads) -> Tensor:
    return _constant_pad_nd(grad, tuple([-each for each in pad]), 0)


@primitive("ConstantPadNdBackward0", axes=Last(lambda self, pad, value: len(pad) // 2), self=_constant_pad_gradient)
def _constant_pad_nd(self: Array, pad: Pads, value: Any) -> Array:
    kept = self
    if min(pad, default=0) < 0:
        amounts = _amounts(pad, self.ndim)
        cut = [slice(max(-a, 0), size - max(-b, 0)) for size, (a, b) in zip(self.shape, amounts, strict=True)]
        kept = self[tuple(cut)]
    if max(pad, default=0) <= 0:  # nothing is added: a copy, which keeps the order of the memory
        result = empty_array(kept.shape, strides_like(kept, None), self.dtype, backend_of_array(self))
        if kept.size < LARGE or not copy_into(result, kept):
            result[...] = kept
        return result
    shape, inside = _room(self.shape, pad)
    result = _new(shape, self)
    if kept.size >= LARGE and copy_into(result[inside], kept):
        _fill_border(result, inside, value)
    else:
        result[...] = value
        result[inside] = kept
    return result


def _fill_border(array: Any, inside: tuple[slice, ...], value: Any) -> None:
    """Fill what lies outside of a box, dimension after dimension."""
    for axis, part in enumerate(inside):
        if part.start:
            array[(*inside[:axis], slice(0, part.start))] = value
        if part.stop < array.shape[axis]:
            array[(*inside[:axis], slice(part.stop, None))] = value


@functools.lru_cache(256)
def _room(sizes: Shape, pad: Pads) -> tuple[Shape, tuple[slice, ...]]:
    """The shape of a padded array, and where in it the elements are that it is made of."""
    amounts = _amounts(pad, len(sizes))
    shape = tuple([size + before + after for size, (before, after) in zip(sizes, amounts, strict=True)])
    inside = [slice(max(a, 0), size - max(b, 0)) for size, (a, b) in zip(shape, amounts, strict=True)]
    return shape, tuple(inside)


def _checked_value(value: Any, input: Tensor) -> Any:
    """A number as the elements of `input` hold it."""
    if isinstance(value, Tensor):
        value = value.item()
    return fitting(value, input._kind.dtype)


@public(method=False)
def constant_pad_nd(input: Tensor, pad: Any, value: Number = 0) -> Tensor:
    """`input` with `value` around it: `pad` is (before, after) of the last dimension, then of the one before, ...

    Negative amounts cut off.
    """
    amounts = _integers("constant_pad_nd", pad)
    _check_length(amounts, input._array.ndim)
    return _padded_by_constant(input, amounts, value)


def _padded_by_constant(input: Tensor, amounts: Pads, value: Any) -> Tensor:
    for size, (before, after) in zip(input._array.shape, _amounts(amounts, input._array.ndim), strict=True):
        if (before < 0 or after < 0) and size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative. A dimension of size {size} cannot be padded by "
                f"({before}, {after})."
            )
    return _constant_pad_nd(input, amounts, _checked_value(value, input))


# ----- reflections and edges ----------------------------------------------------------------------------------------


def _reflected(size: int, before: int, after: int) -> Any:
    places = np.abs(np.arange(-before, size + after))
    return (size - 1) - np.abs((size - 1) - places)


def _repeated(size: int, before: int, after: int) -> Any:
    return np.clip(np.arange(-before, size + after), 0, max(size - 1, 0))


@functools.lru_cache(64)
def _flat_places(sources: Sources, sizes: Shape, pad: Pads) -> Any:
    """Where each element of a padded array comes from, all padded dimensions as one."""
    amounts = _amounts(pad, len(sizes))
    return combined_places([sources(size, *amount) for size, amount in zip(sizes, amounts, strict=True)], sizes)


def _taken(array: Any, pad: Pads, sources: Sources) -> Any:
    """Elements along the padded dimensions, each from the place that `sources` names."""
    shape, _ = _room(array.shape, pad)
    ensure_room_like(array, shape)
    last = array.ndim in (4, 5) and suggests_channels_last(array)
    if not last and array.size < _MANY:
        rank = len(pad) // 2
        return take_combined(array, _flat_places(sources, array.shape[-rank:], pad), shape[-rank:])
    amounts = _amounts(pad, array.ndim)
    result = new_array(shape, array.dtype, last, array)
    if array.size >= _MANY and min(pad) >= 0:
        _surround(result, array, amounts, sources)
        return result
    found = array
    for dim, (size, (before, after)) in enumerate(zip(array.shape, amounts, strict=True)):
        if before or after:
            found = np.take(found, beside(sources(size, before, after), found), axis=dim)
    result[...] = found
    return result


def _surround(result: Any, array: Any, amounts: tuple[tuple[int, int], ...], sources: Any) -> None:
    """Write `array` into the middle of `result`, then the edges of one dimension after the other."""
    inside = [slice(before, before + size) for size, (before, _) in zip(array.shape, amounts, strict=True)]
    result[tuple(inside)] = array
    for dim, (size, (before, after)) in enumerate(zip(array.shape, amounts, strict=True)):
        if not (before or after):
            continue
        lead, rest = (slice(None),) * dim, tuple(inside[dim + 1 :])
        places = beside(sources(size, before, after) + before, array)
        for edge in (slice(before), slice(before + size, before + size + after)):
            result[(*lead, edge, *rest)] = result[(*lead, places[edge], *rest)]


def _put_back(grad: Any, shape: Shape, pad: Pads, sources: Any) -> Any:
    """The transpose of `_taken`: gradients added up where their elements came from."""
    for dim, (size, (before, after)) in enumerate(zip(shape, _amounts(pad, grad.ndim), strict=True)):
        if not (before or after):
            continue
        places = sources(size, before, after)
        lead = (slice(None),) * dim
        total = np.zeros((*grad.shape[:dim], size, *grad.shape[dim + 1 :]), grad.dtype, like=grad)
        # The middle goes where it came from; the few padded slices follow one by one, as several may meet.
        first, last = max(before, 0), len(places) - max(after, 0)
        if last > first:
            total[(*lead, slice(places[first], places[last - 1] + 1))] = grad[(*lead, slice(first, last))]
        for place in (*range(min(first, len(places))), *range(max(last, first), len(places))):
            total[(*lead, places[place])] += grad[(*lead, place)]
        grad = total
    return grad


_KINDS = {"reflect": ("Reflection", _reflected), "replicate": ("Replication", _repeated)}


def _edge_padding(mode: str, rank: int) -> Primitive[..., Tensor]:
    """The primitive that pads `rank` dimensions, with its derivative, which is one too."""
    word, sources = _KINDS[mode]

    def pad_kernel(self: Array, padding: Pads) -> Array:
        return _taken(self, padding, sources)

    def backward_kernel(grad_output: Array, self: Array, padding: Pads) -> Array:
        result = _new(self.shape, self)
        result[...] = _put_back(grad_output, self.shape, padding, sources)
        return result

    forward: Primitive[..., Tensor]
    backward = primitive(
        f"{word}Pad{rank}DBackwardBackward0",
        op_name=f"{word.lower()}_pad{rank}d_backward",
        axes=Images(),
        shape=lambda grad_output, self, padding: _new(self.shape, self),
        grad_output=lambda grad, padding: forward(grad, padding),
    )(in_single(backward_kernel))
    forward = primitive(
        f"{word}Pad{rank}DBackward0",
        op_name=f"{word.lower()}_pad{rank}d",
        axes=Images(),
        shape=lambda self, padding: _new(_room(self.shape, padding)[0], self),
        self=lambda grad, self, padding: backward(grad, self, padding),
    )(pad_kernel)
    return forward


_EDGE_PADDINGS = {(mode, rank): _edge_padding(mode, rank) for mode in _KINDS for rank in (1, 2, 3)}


@functools.lru_cache(256)
def _check_edges(shape: Shape, pad: Pads, mode: str) -> None:
    rank = len(pad) // 2
    if 0 in shape[-rank - 1 :]:
        raise RuntimeError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    amounts = _amounts(pad, len(shape))
    for dim, (size, (before, after)) in enumerate(zip(shape, amounts, strict=True)):
        if mode == "reflect" and (before >= size or after >= size) and (before or after):
            raise RuntimeError(
                f"Argument #{2 * (len(shape) - dim) + 2}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {after}) at dimension {dim} of input {list(shape)}"
            )
    padded = [size + before + after for size, (before, after) in zip(shape, amounts, strict=True)][-rank:]
    if min(padded) < 0 or max(padded) < 1:
        letters = "DHW"[-rank:]
        given, found = (
            " ".join(f"{letter}: {size}" for letter, size in zip(letters, sizes, strict=True))
            for sizes in (shape[-rank:], padded)
        )
        raise RuntimeError(f"input ({given}) is too small. Calculated output {found}")


# ----- circles ------------------------------------------------------------------------------------------------------


def _circular_pad(input: Tensor, pad: Pads) -> Tensor:
    """Each side continued by the opposite one, by copies into parts of one new tensor."""
    shape = list(input.shape)
    amounts = _amounts(pad, len(shape))
    for dim, (size, (before, after)) in enumerate(zip(input.shape, amounts, strict=True)):
        if before > size or after > size:
            raise RuntimeError(
                f"Padding value causes wrapping around more than once. Dimension {dim} of size {size} cannot be padded "
                f"by ({before}, {after})."
            )
        shape[dim] = size + before + after
        if shape[dim] < 0:
            raise RuntimeError(
                f"Negative padding value is resulting in an empty dimension: dimension {dim} of size {size} cannot be "
                f"padded by ({before}, {after})."
            )
    result = input.new_empty(shape)
    target, source = result, input
    for dim, (before, after) in enumerate(amounts):
        size = input.shape[dim]
        length = shape[dim] - max(before, 0) - max(after, 0)
        target = target.narrow(dim, max(before, 0), length)
        source = source.narrow(dim, max(-before, 0), size + min(before, 0) + min(after, 0))
    target.copy_(source)
    for dim in reversed(range(len(shape) - len(pad) // 2, len(shape))):
        before, after = amounts[dim]
        size = shape[dim]
        if before > 0:
            result.narrow(dim, 0, before).copy_(result.narrow(dim, size - before - max(after, 0), before))
        if after > 0:
            result.narrow(dim, size - after, after).copy_(result.narrow(dim, max(before, 0), after))
    return result


# ----- the public function ------------------------------------------------------------------------------------------


_INT_ALONE = {int}


def _integers(function: str, pad: Any) -> Pads:
    if type(pad) is tuple and {*map(type, pad)} == _INT_ALONE:
        return pad
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"{function}(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    amounts = []
    for place, each in enumerate(pad):
        amount = integer(each, place)
        if amount is None:
            raise TypeError(
                f"{function}(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{type(each).__name__} at pos {place}"
            )
        amounts.append(amount)
    return tuple(amounts)


@public(
    "nn.functional.pad", function=False, method=False, autocast=on(cpu=FullIf("mode", ("reflect", "replicate"), True))
)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` made larger: `pad` is (before, after) of the last dimension, then of the one before, and so on.

    The new elements are `value` (by default 0) in mode "constant", mirrored in "reflect", the edge's in "replicate",
    the opposite side's in "circular". Negative amounts cut off.
    """
    amounts = _integers("pad", pad)
    dims = input._array.ndim
    if isinstance(value, complex):
        raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {type(value).__name__}")
    _check_length(amounts, dims)
    if mode == "constant":
        return _padded_by_constant(input, amounts, 0.0 if value is None else float(value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument, but got value={value}')
    if mode != "circular" and mode not in _KINDS:
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: it is one of 'constant', 'reflect', 'replicate', 'circular'"
        )
    rank = len(amounts) // 2
    if rank not in (1, 2, 3) or dims not in (rank + 1, rank + 2):
        raise NotImplementedError(
            f"Padding size {len(amounts)} is not supported for {dims}D input tensor. Mode {mode!r} pads the last "
            "dimension of a 2D or 3D input (2 values), the last two of a 3D or 4D input (4 values) or the last three "
            "of a 4D or 5D input (6 values)."
        )
    if mode == "circular":
        return _circular_pad(input, amounts)
    _check_edges(input._array.shape, amounts, mode)
    if input._kind.dtype.category == BOOL:
        word = "reflection" if mode == "reflect" else "replication"
        raise NotImplementedError(f"\"{word}_pad{rank}d\" not implemented for 'Bool'")
    return _EDGE_PADDINGS[mode, rank](input, amounts)
