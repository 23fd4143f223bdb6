"""Broadcasting, and its reverse for gradients."""

from __future__ import annotations

import functools

from ..._core.modes import THREAD
from ..._core.slots import SLOTS
from ..._core.tensor import PLAIN_TYPES, Tensor


def sum_to_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo a broadcast: sum over the dimensions that were added or stretched."""
    given = tensor._array.shape
    if given == shape:
        return tensor
    summation = _summation(given, shape)
    if summation is None:
        raise ValueError(f"a tensor of shape {list(given)} is no broadcast one of shape {list(shape)}")
    dims, keepdim, added = summation
    if not keepdim and THREAD.modes.grad:  # recorded, it is PyTorch's two nodes
        keepdim = added = True
    summed = _summed(tensor, dims, keepdim) if dims else tensor
    return summed.reshape(shape) if added else summed


@functools.lru_cache(1024)
def _summation(given: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool, bool] | None:
    """What undoes a broadcast from `shape`: the dimensions to sum over, whether the sum keeps them, and whether some
    are left over then, of size 1. None: there was no such broadcast.
    """
    added = len(given) - len(shape)
    if added < 0:
        return None
    if given[added:] == shape:
        return tuple(range(added)), False, False
    if not all(own in (size, 1) for own, size in zip(shape, given[added:], strict=True)):
        return None
    stretched = [added + i for i, size in enumerate(shape) if size == 1 and given[added + i] != 1]
    return (*range(added), *stretched), True, added > 0


def _summed(tensor: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """`tensor.sum(dims, keepdim)`; of most tensors there is nothing to ask before the op can run."""
    kind = tensor._kind
    if type(tensor) in PLAIN_TYPES and kind.is_cpu and kind.differentiable:
        return SLOTS.sum_over(tensor, dims, keepdim)
    return tensor.sum(dims, keepdim)


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to the shape `to`."""
    return _summation(to, shape) is not None
