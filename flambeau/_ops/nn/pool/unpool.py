"""The partial inverse of maximum pooling: values put back where they were found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...._core.dtype import FLOAT, int64
from ...._core.process.determinism import alert_not_deterministic
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, on
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...reduce.reductions import no_kernel
from ...shape.view import as_ints
from .max_pool import check_places, picked
from .pool_window import Sizes, images_last, laid_out


def _placed(array: Any, indices: Any, output_size: Sizes, last: bool) -> Any:
    rank = len(output_size)
    area = math.prod(output_size)
    lead = array.shape[:-rank]
    planes = math.prod(lead)
    result = np.zeros(planes * area, array.dtype, like=array)
    if array.size:
        check_places(indices, output_size, RuntimeError)
        places = indices.reshape(planes, -1) + np.arange(planes, like=array).reshape(-1, 1) * area
        result[places.reshape(-1)] = array.reshape(-1)
    return laid_out(result.reshape(*lead, *output_size), last)


def _putting_back(rank: int) -> Primitive[..., Tensor]:
    def unpool(self: Array, indices: Array, output_size: Sizes) -> Array:
        return _placed(self, indices, output_size, images_last(self, rank))

    op = primitive(
        f"MaxUnpool{rank}DBackward0", op_name=f"max_unpool{rank}d", axes=Images(),
        self=lambda grad, indices: picked(grad, indices, rank),
    )(unpool)  # fmt: skip
    op.is_linear = True
    return op


_OPS = {rank: _putting_back(rank) for rank in (2, 3)}


def _numbers(value: Any, rank: int) -> Sizes:
    numbers = tuple(value) if isinstance(value, Iterable) else (value,) * rank
    return as_ints(numbers) if rank == 3 else numbers


def _output_size(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, wanted: Any) -> Sizes:
    """The size before pooling: what the caller says, within a stride of what it would be without a remainder."""
    rank = len(kernel)
    default = tuple([(shape[dim - rank] - 1) * stride[dim] + kernel[dim] - 2 * padding[dim] for dim in range(rank)])
    if wanted is None:
        return default
    given = tuple(wanted)[2:] if len(wanted) == rank + 2 else tuple(wanted)
    if len(given) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(given)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(given, default, stride, strict=False)):
        if not usual - step < size < usual + step:
            raise ValueError(
                f'invalid output_size "{given}" (dim {dim} must be between {usual - step} and {usual + step})'
            )
    return given


def _check(name: str, rank: int, input: Tensor, indices: Tensor, stride: Sizes, output_size: Sizes) -> None:
    shape = input._array.shape
    if indices._kind.dtype is not int64:
        raise RuntimeError(f"{name}: elements in indices should be type int64 but got: {indices.dtype}")
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dimensions."
        )
    if shape != indices._array.shape:
        raise RuntimeError(
            f"{name}: Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices "
            f"tensor with shape: {list(indices._array.shape)}"
        )
    if min(stride) <= 0:
        raise RuntimeError(f"{name}: strides should be greater than zero, but got stride: {list(stride)}")
    for dim in range(1 if len(shape) == rank + 2 else 0, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}: Expected input to have non-zero size for non-batch dimensions, but got {list(shape)} with "
                f"dimension {dim} being empty."
            )
    if min(output_size) < 0:
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension: {list(output_size)}")
    if input._kind.dtype.category != FLOAT:
        raise no_kernel(name, input)


def _unpooled(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    name = f"max_unpool{rank}d"
    alert_not_deterministic(f"max_unpooling{max(rank, 2)}d_forward_out")
    kernel = _numbers(kernel_size, rank)
    steps = kernel if stride is None else _numbers(stride, rank)
    size = _output_size(input._array.shape, kernel, steps, _numbers(padding, rank), output_size)
    if not all(isinstance(each, int) for each in size):
        raise TypeError(f"{name}(): argument 'output_size' must be tuple of ints, not {list(size)}")
    if len(size) != rank:
        raise RuntimeError(f"There should be exactly {rank} elements in output_size, but got {list(size)}")
    if rank == 1:
        if stride is not None and steps[0] <= 0:
            raise RuntimeError(f"{name}: strides should be greater than zero, but got stride: {list(steps)}")
        flat, places = input.unsqueeze(-1), indices.unsqueeze(-1)
        _check("max_unpool2d", 2, flat, places, (*steps, 1), (*size, 1))
        return _OPS[2](flat, places, (*size, 1)).squeeze(-1)
    _check(name, rank, input, indices, steps, size)
    return _OPS[rank](input, indices, size)


@public("nn.functional.max_unpool1d", function=False, method=False, autocast=on(cpu=FULL))
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Values put back at the places that `max_pool1d` found them in, zero elsewhere."""
    return _unpooled(1, input, indices, kernel_size, stride, padding, output_size)


@public("nn.functional.max_unpool2d", function=False, method=False, autocast=on(cpu=FULL))
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Values put back at the places that `max_pool2d` found them in, zero elsewhere."""
    return _unpooled(2, input, indices, kernel_size, stride, padding, output_size)


@public("nn.functional.max_unpool3d", function=False, method=False, autocast=on(cpu=FULL))
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Values put back at the places that `max_pool3d` found them in, zero elsewhere."""
    return _unpooled(3, input, indices, kernel_size, stride, padding, output_size)
