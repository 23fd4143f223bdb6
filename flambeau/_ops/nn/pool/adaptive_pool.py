"""Pooling to a given output size: means and maxima."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._core.arrays.quick import dim_moved
from ...._core.arrays.room import ensure_room_like
from ...._core.backend import beside
from ...._core.dtype import FLOAT
from ...._core.size import fits_int64
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...create.like import zeros_like
from ...reduce.reductions import no_kernel
from ..image.linear_maps import Taps, apply_taps, channels_to_end, transposed
from .max_pool import has_nan, lowest, maxima, scattering
from .mean_pool import averaged, averaged_backward
from .pool_window import (
    Sizes,
    along,
    check_line,
    empty,
    empty_windows,
    images_last,
    is_integer,
    laid_out,
    row_major,
    sizes,
)


def _bounds(size: int, count: int) -> tuple[Any, Any]:
    """Where each of `count` windows begins and ends; neighbours overlap where `size` is no multiple."""
    numbers = np.arange(count)
    return numbers * size // max(count, 1), -(-(numbers + 1) * size // max(count, 1))


def _uniform(spatial: Sizes, counts: Sizes) -> Sizes | None:
    """The common size of all windows, if they have one."""
    if 0 in counts or any(size % count for size, count in zip(spatial, counts, strict=True)):
        return None
    return tuple([size // count for size, count in zip(spatial, counts, strict=True)])


def _taps(size: int, count: int) -> tuple[Taps, Any]:
    start, end = _bounds(size, count)
    lengths = end - start
    offsets = np.arange(lengths.max(initial=1)).reshape(-1, 1)
    return Taps(np.minimum(start + offsets, size - 1), None, lengths), lengths


@in_single
def _average(array: Any, counts: Sizes, last: bool) -> Any:
    rank = len(counts)
    spatial = array.shape[-rank:]
    ensure_room_like(array, (*array.shape[:-rank], *counts))
    uniform = _uniform(spatial, counts)
    if uniform is not None:
        return averaged(array, uniform, uniform, (0,) * rank, False, True, None, last)
    result, moved = channels_to_end(array, rank)
    for axis in range(-1, -rank - 1, -1):
        taps, lengths = _taps(spatial[axis], counts[axis])
        place = axis - moved
        result = apply_taps(result, place, taps) / beside(
            lengths.astype(array.dtype).reshape(-1, *[1] * (-1 - place)), array
        )
    return laid_out(dim_moved(result, -1, 1) if moved else result, last)


def _average_in_halves(array: Any, counts: Sizes) -> Any:
    """The means over volumes in half precision: PyTorch rounds after every addition, so the order matters."""
    rank = len(counts)
    bounds = [_bounds(size, count) for size, count in zip(array.shape[-rank:], counts, strict=True)]
    total = np.zeros((*array.shape[:-rank], *counts), array.dtype, like=array)
    for offsets in itertools.product(*[range((end - start).max(initial=0)) for start, end in bounds]):
        places = [np.minimum(start + at, end - 1) for at, (start, end) in zip(offsets, bounds, strict=True)]
        inside = [along(start + offsets[dim] < end, dim, rank) for dim, (start, end) in enumerate(bounds)]
        values = array[(..., *[beside(each, array) for each in np.ix_(*places)])]
        total = np.where(beside(functools.reduce(np.logical_and, inside), array), total + values, total)
    for dim, (start, end) in enumerate(bounds):
        total = total / beside(along((end - start).astype(array.dtype), dim, rank), array)
    return total


@in_single
def _average_backward(grad: Tensor, source: Tensor, rank: int, last: bool) -> Any:
    spatial, counts = source.shape[-rank:], grad.shape[-rank:]
    uniform = _uniform(spatial, counts)
    if uniform is not None:
        return averaged_backward(grad, source, uniform, uniform, (0,) * rank, False, True, None, last)
    result, moved = channels_to_end(grad, rank)
    for axis in range(-rank, 0):
        taps, lengths = _taps(spatial[axis], counts[axis])
        place = axis - moved
        share = result / beside(lengths.astype(grad.dtype).reshape(-1, *[1] * (-1 - place)), grad)
        result = apply_taps(share, place, transposed(taps, spatial[axis]))
    return laid_out(dim_moved(result, -1, 1) if moved else result, last)


def _checked(grad: Tensor, name: str) -> Tensor:
    """`grad`, of which only the batch may be empty, as PyTorch has it."""
    if 0 in grad._array.shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
            f"{list(grad._array.shape)}"
        )
    return grad


def _windows(self: Array, counts: Sizes) -> Array:
    """The shape rule of means."""
    return empty_windows(self, counts, images_last(self, len(counts)))


def _windows_with_indices(self: Array, counts: Sizes) -> tuple[Array, Array]:
    """The shape rule of maxima: values and where they were."""
    values = _windows(self, counts)
    return values, values.astype(np.int64)


def _averaging(rank: int) -> Primitive[..., Tensor]:
    """The op that averages as many windows of `rank` dimensions as are asked for, with its transpose as derivative."""
    node, name = f"AdaptiveAvgPool{rank}D", f"adaptive_avg_pool{rank}d"

    def pool(self: Array, output_size: Sizes) -> Array:
        if rank == 3 and self.dtype.itemsize == 2:
            return _average_in_halves(self, output_size)
        return _average(self, output_size, images_last(self, rank))

    def share(self: Array, input: Array) -> Array:
        return _average_backward(self, input, rank, images_last(input, rank))

    forward: Primitive[..., Tensor]
    backward = primitive(
        f"{node}BackwardBackward0", op_name=f"{name}_backward", axes=Images(),
        shape=lambda self, input: empty(input.shape, self.dtype, images_last(input, rank), self),
        self=lambda grad, self_sym_sizes: forward(grad, self_sym_sizes[-rank:]), input=lambda grad: zeros_like(grad),
    )(share)  # fmt: skip
    forward = primitive(
        f"{node}Backward0", op_name=name, axes=Images(), shape=_windows,
        self=lambda grad, self: backward(_checked(grad, f"{name}_backward"), self),
    )(pool)  # fmt: skip
    return forward


def _flat(places: Sequence[Any], steps: Sizes) -> Any:
    """The place in a flattened plane of every combination of places along its dimensions."""
    rank = len(steps)
    return sum(along(place * step, dim, rank) for dim, (place, step) in enumerate(zip(places, steps, strict=True)))


def _maxima(array: Any, counts: Sizes, last: bool) -> tuple[Any, Any]:
    rank = len(counts)
    spatial = array.shape[-rank:]
    uniform = _uniform(spatial, counts)
    if uniform is not None:
        return maxima(array, uniform, uniform, (0,) * rank, (1,) * rank, False, last)
    steps = row_major(spatial)
    best = empty((*array.shape[:-rank], *counts), array.dtype, last, array)
    bounds = [_bounds(size, count) for size, count in zip(spatial, counts, strict=True)]
    best.fill(lowest(array.dtype))
    indices = empty(best.shape, np.int64, last, array)
    indices[...] = beside(_flat([start for start, _ in bounds], steps), array)
    nan = has_nan(array)
    reach = [int((end - start).max(initial=0)) for start, end in bounds]
    for offsets in itertools.product(*map(range, reach)):
        # Windows that are shorter see their last element again, which changes nothing.
        places = [np.minimum(start + at, end - 1) for at, (start, end) in zip(offsets, bounds, strict=True)]
        values = array[(..., *[beside(each, array) for each in np.ix_(*places)])]
        better = values > best
        if nan:
            better |= np.isnan(values)
        np.copyto(best, values, where=better)
        np.copyto(indices, beside(_flat(places, steps), array), where=better)
    return best, indices


def _maximising(rank: int) -> Primitive[..., Tensor]:
    """The op that finds the largest elements of as many windows of `rank` dimensions as are asked for."""
    node, name = f"AdaptiveMaxPool{rank}D", f"adaptive_max_pool{rank}d"
    backward = scattering(node, name, rank, images_last)

    def pool(self: Array, output_size: Sizes) -> Any:
        return _maxima(self, output_size, images_last(self, rank))

    return primitive(
        f"{node}Backward0", op_name=name, axes=Images(), shape=_windows_with_indices,
        self=lambda grad, self, result1: backward(_checked(grad, f"{name}_backward"), self, result1),
    )(in_single(pool))  # fmt: skip


_MEANS = {rank: _averaging(rank) for rank in (2, 3)}
_MAXIMA = {rank: _maximising(rank) for rank in (2, 3)}


# ----- arguments ---------------------------------------------------------------------------------------------------


def _completed(name: str, input: Tensor, output_size: Any, rank: int) -> Sizes:
    """The output size with the input's own in place of None."""
    if isinstance(output_size, (dict, bytes)):  # PyTorch counts what it can count
        raise RuntimeError(f"{name}: output_size must be {rank} numbers, not {type(output_size).__name__}")
    if not isinstance(output_size, (tuple, list)):
        return _whole(name, (output_size,) * rank)
    shape = input._array.shape
    if len(shape) <= len(output_size):
        raise ValueError(
            f"{name}: Input dimension should be at least {len(output_size) + 1}, but the input has shape {list(shape)}"
        )
    own = shape[len(shape) - len(output_size) :]
    return _whole(name, tuple([mine if given is None else given for given, mine in zip(output_size, own, strict=True)]))


def _whole(name: str, counts: tuple[Any, ...]) -> Sizes:
    """The output size, if it is made of integers."""
    if all(type(each) is int and -(2**63) <= each < 2**63 for each in counts):  # the usual case, without calls
        return counts
    if not all(map(is_integer, counts)) or isinstance(counts[0], bool):
        kinds = ", ".join(type(each).__name__ for each in counts)
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not ({kinds})")
    if not all(fits_int64(int(each)) for each in counts):
        raise ValueError(f"Overflow when unpacking long long: {name}() was given an output_size beyond 64 bits")
    return tuple([int(each) for each in counts])


def _check(name: str, input: Tensor, rank: int, empty_dims: range) -> None:
    shape = input._array.shape
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(shape)}")
    for dim in empty_dims:
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {dim + len(shape)} being empty"
            )
    if input._kind.dtype.category != FLOAT:
        raise no_kernel(name if rank == 2 else f"{name}_cpu", input)


def _means(rank: int, input: Tensor, counts: Sizes) -> Tensor:
    name = f"adaptive_avg_pool{rank}d"
    if len(counts) != rank:
        raise RuntimeError(f"{name}: output_size must be {rank}: it has {len(counts)} elements")
    if min(counts) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {list(counts)}"
        )
    if counts == (1,) * rank and input.dim() in (rank + 1, rank + 2):
        return input.mean(tuple(range(-1, -rank - 1, -1)), keepdim=True)
    _check(name, input, rank, range(-rank, 0))
    return _MEANS[rank](input, counts)


def _largest(rank: int, input: Any, counts: Sizes) -> Tensor:
    name = f"adaptive_max_pool{rank}d"
    if len(counts) != rank:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {rank}, but it is {len(counts)}")
    _check(name, input, rank, range(1 - input._array.ndim, 0))
    if min(counts) < 0:
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension: output_size is {list(counts)}")
    return _MAXIMA[rank](input, counts)


@public("nn.functional.adaptive_avg_pool1d", method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows along the last dimension as are asked for."""
    check_line("adaptive_avg_pool1d", input)
    counts = sizes("adaptive_avg_pool1d", "output_size", output_size, 1, 2)
    return _means(2, input.unsqueeze(-2), (1, *counts)).squeeze(-2)


@public("nn.functional.adaptive_avg_pool2d", function=False, method=False)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows in each of the last two dimensions as are asked for; None keeps a size."""
    return _means(2, input, _completed("adaptive_avg_pool2d", input, output_size, 2))


@public("nn.functional.adaptive_avg_pool3d", function=False, method=False, autocast=on(cpu=FULL))
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows in each of the last three dimensions as are asked for; None keeps a size."""
    return _means(3, input, _completed("adaptive_avg_pool3d", input, output_size, 3))


@public(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The largest elements of as many windows along the last dimension as are asked for, and their places."""
    check_line("adaptive_max_pool1d", input)
    counts = sizes("adaptive_max_pool1d", "output_size", output_size, 1, 2)
    values, indices = _largest(2, input.unsqueeze(-2), (1, *counts))
    return values.squeeze(-2), indices.squeeze(-2)


@public(
    "nn.functional.adaptive_max_pool1d_with_indices",
    name="adaptive_max_pool1d_with_indices",
    function=False,
    method=False,
)
def _adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of as many windows along the last dimension as are asked for, and their places."""
    return adaptive_max_pool1d(input, output_size)


@public("nn.functional.adaptive_max_pool1d", name="adaptive_max_pool1d", function=False, method=False)
def _adaptive_max_pool1d_functional(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows along the last dimension; with `return_indices`, their places too."""
    found = adaptive_max_pool1d(input, output_size)
    return found if return_indices else found[0]


@public("nn.functional.adaptive_max_pool2d_with_indices", function=False, method=False)
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of windows in the last two dimensions, and their places; None keeps a size."""
    return _largest(2, input, _completed("adaptive_max_pool2d", input, output_size, 2))


@public("nn.functional.adaptive_max_pool2d", function=False, method=False)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of windows in the last two dimensions; with `return_indices`, their places too."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


@public("nn.functional.adaptive_max_pool3d_with_indices", function=False, method=False)
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of windows in the last three dimensions, and their places; None keeps a size."""
    return _largest(3, input, _completed("adaptive_max_pool3d", input, output_size, 3))


@public("nn.functional.adaptive_max_pool3d", function=False, method=False, autocast=on(cpu=FULL))
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of windows in the last three dimensions; with `return_indices`, their places too."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]
