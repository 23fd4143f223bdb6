"""Maximum pooling over windows whose places are drawn at random."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ...._core.dtype import FLOAT, LEGACY_NAMES
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...random.draws import rand
from ...reduce.reductions import no_kernel
from .max_pool import has_nan, lowest, scattering
from .pool_window import Sizes, is_integer, row_major


def _starts(samples: Any, size: int, count: int, length: int) -> Any:
    """Where the `count` windows of each plane begin: steps of two sizes in an order that the sample decides."""
    starts = np.full((len(samples), count), size - length, np.int64, like=samples)
    if count > 1:
        alpha = samples.dtype.type(size - length) / samples.dtype.type(count - 1)
        sample = samples.reshape(-1, 1)
        numbers = np.arange(count - 1, like=samples).astype(samples.dtype)
        starts[:, :-1] = ((numbers + sample) * alpha).astype(np.int64) - (sample * alpha).astype(np.int64)
    return starts


def _fractional(array: Any, kernel: Sizes, counts: Sizes, samples: Any) -> tuple[Any, Any]:
    rank = len(kernel)
    spatial = array.shape[-rank:]
    planes = math.prod(array.shape[:-rank])
    lines = samples.reshape(planes, rank)
    order = range(rank) if rank == 3 else (1, 0)  # which sample belongs to which dimension
    starts = [
        _starts(lines[:, place], size, count, length)
        for place, size, count, length in zip(order, spatial, counts, kernel, strict=True)
    ]
    steps = row_major(spatial)
    corner = np.zeros((planes, *counts), np.int64, like=array)
    for dim, (start, step) in enumerate(zip(starts, steps, strict=True)):
        corner += (start * step).reshape(planes, *[counts[dim] if each == dim else 1 for each in range(rank)])
    corner = corner.reshape(planes, math.prod(counts))
    flat = array.reshape(planes, math.prod(spatial))
    best = np.full(corner.shape, lowest(array.dtype), array.dtype, like=array)
    indices = corner.copy()
    nan = has_nan(array)
    for offsets in itertools.product(*map(range, kernel)):
        places = corner + sum(at * step for at, step in zip(offsets, steps, strict=True))
        values = np.take_along_axis(flat, places, 1)
        better = values > best
        if nan:
            better |= np.isnan(values)
        np.copyto(best, values, where=better)
        np.copyto(indices, places, where=better)
    shape = (*array.shape[:-rank], *counts)
    return best.reshape(shape), indices.reshape(shape)


def _drawing(rank: int) -> Primitive[..., Tensor]:
    """The op that looks into randomly placed windows in `rank` dimensions."""
    node, name = f"FractionalMaxPool{rank}D", f"fractional_max_pool{rank}d"
    backward = scattering(node, name, rank, lambda array, rank: False)

    def pool(self: Array, kernel_size: Sizes, output_size: Sizes, random_samples: Array) -> Any:
        return _fractional(self, kernel_size, output_size, random_samples)

    def gradient(grad: Tensor, self: Tensor, kernel_size: Sizes, output_size: Sizes, result1: Any) -> Tensor:
        """The gradient of the input. The window stands among the parameters because PyTorch's node shows it."""
        return backward(grad, self, result1)

    return primitive(f"{node}Backward0", op_name=name, self=gradient)(in_single(pool))


_OPS = {rank: _drawing(rank) for rank in (2, 3)}


def _expanded(name: str, argument: str, value: Any, rank: int) -> Sizes:
    given = (value,) * rank if is_integer(value) else value
    if isinstance(value, bool) or not isinstance(given, (tuple, list)) or not all(map(is_integer, given)):
        raise TypeError(f"{name}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}")
    if len(given) != rank:
        raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of Ints: got {list(given)}")
    return tuple([int(each) for each in given])


def _counts(name: str, rank: int, shape: Sizes, output_size: Any, output_ratio: Any) -> Sizes:
    if output_size is not None:
        return _expanded(name, "output_size", output_size, rank)
    if output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if isinstance(output_ratio, (int, float)):
        if rank == 2:
            raise TypeError(f"{name}(): output_ratio must be a tuple, one for each dimension, not {output_ratio}")
        output_ratio = (output_ratio,) * rank
    ratios = tuple(output_ratio)
    if len(ratios) > rank == 2:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    try:
        return tuple([int(shape[dim - rank] * ratios[dim]) for dim in range(rank)])
    except IndexError:
        raise IndexError(
            f"{name}: tuple index out of range: output_ratio has {len(ratios)} of {rank} elements"
        ) from None
    except ValueError:
        raise ValueError(f"{name}: output_ratio must be numbers, but is {output_ratio}") from None


def _check_samples(name: str, input: Tensor, samples: Tensor, rank: int) -> None:
    shape = samples._array.shape
    batch = input._array.shape[0] if input._array.ndim == rank + 2 else 1
    wanted = (batch, input._array.shape[-rank - 1], rank)
    if samples.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: Expect _random_samples to have the same dtype as input: {LEGACY_NAMES[samples.dtype]} is not "
            f"{LEGACY_NAMES[input.dtype]}"
        )
    if len(shape) != 3:
        raise RuntimeError(f"{name}: Expect _random_samples to have 3 dimensions, got {len(shape)}")
    for dim, (given, needed) in enumerate(zip(shape, wanted, strict=True)):
        if given < needed if dim < 2 else given != needed:
            relation = ">= batch or channel size" if dim < 2 else "equals to"
            raise RuntimeError(f"{name}: Expect _random_samples.size({dim}) {relation} {needed}; got {given}.")


_DIMENSIONS = {2: ("height", "width"), 3: ("time", "height", "width")}


def _pooled(
    rank: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> Tensor:
    name = f"fractional_max_pool{rank}d"
    shape = input._array.shape
    if len(shape) <= rank:
        raise IndexError(
            f"{name}: Dimension out of range (expected a tensor of {rank + 1} or {rank + 2} dimensions, but got shape "
            f"{list(shape)})"
        )
    counts = _counts(name, rank, shape, output_size, output_ratio)
    if input._kind.dtype.category != FLOAT:
        raise no_kernel("check_uniform_bounds", input)
    if samples is None:
        batch = 1 if len(shape) == rank + 1 else shape[0]
        samples = rand(batch, shape[-rank - 1], rank, dtype=input.dtype, device=input._kind.device)
    kernel = _expanded(name, "kernel_size", kernel_size, rank)
    if len(shape) > rank + 2 or 0 in shape[-rank - 1 :]:
        raise RuntimeError(
            f"{name}(): Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with non-empty planes, but got "
            f"{list(shape)}"
        )
    _check_samples(name, input, samples, rank)
    for word, size, count, length in zip(_DIMENSIONS[rank], shape[-rank:], counts, kernel, strict=True):
        # PyTorch leaves an element to spare in three dimensions, not in two.
        if count + length - 1 + (rank == 3) > size or length <= 0 or count <= 0:
            raise RuntimeError(
                f"{name}(): pool {word} {length} too large relative to input {word} {size} (output {word} {count})"
            )
    batch = math.prod(shape[: -rank - 1])
    return _OPS[rank](input, kernel, counts, samples[:batch, : shape[-rank - 1]])


@public("nn.functional.fractional_max_pool2d_with_indices", function=False, method=False)
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest elements of randomly placed windows in the last two dimensions, and their places."""
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


@public("nn.functional.fractional_max_pool2d", function=False, method=False, autocast=on(cpu=FULL))
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest elements of randomly placed windows in the last two dimensions."""
    found = _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@public("nn.functional.fractional_max_pool3d_with_indices", function=False, method=False)
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest elements of randomly placed windows in the last three dimensions, and their places."""
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)


@public("nn.functional.fractional_max_pool3d", function=False, method=False, autocast=on(cpu=FULL))
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest elements of randomly placed windows in the last three dimensions."""
    found = _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
