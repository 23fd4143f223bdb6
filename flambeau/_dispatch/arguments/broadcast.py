"""Broadcasting, and its reverse for gradients."""

from __future__ import annotations

from ..._core.modes import THREAD
from ..._core.tensor import Tensor


def sum_to_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo a broadcast: sum over the dimensions that were added or stretched."""
    given = tensor._array.shape
    if given == shape:
        return tensor
    added = len(given) - len(shape)
    summed = tensor
    if given[added:] == shape and not THREAD.modes.grad:  # recorded, it is PyTorch's two nodes
        return summed.sum(tuple(range(added)))
    dims = [*range(added), *(added + i for i, size in enumerate(shape) if size == 1 and given[added + i] != 1)]
    if dims:
        summed = summed.sum(dims, keepdim=True)
    return summed.reshape(shape) if added else summed


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to the shape `to`."""
    if len(shape) > len(to):
        return False
    if to[len(to) - len(shape) :] == shape:
        return True
    return all(a in (b, 1) for a, b in zip(reversed(shape), reversed(to), strict=False))
