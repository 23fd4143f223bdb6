"""Broadcasting, and its reverse for gradients."""

from __future__ import annotations

from ..._core.modes import THREAD
from ..._core.slots import SLOTS
from ..._core.tensor import PLAIN_TYPES, Tensor


def sum_to_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo a broadcast: sum over the dimensions that were added or stretched."""
    given = tensor._array.shape
    if given == shape:
        return tensor
    added = len(given) - len(shape)
    if given[added:] == shape and not THREAD.modes.grad:  # recorded, it is PyTorch's two nodes
        return _summed(tensor, tuple(range(added)), False)
    dims = [*range(added), *[added + i for i, size in enumerate(shape) if size == 1 and given[added + i] != 1]]
    summed = _summed(tensor, tuple(dims), True) if dims else tensor
    return summed.reshape(shape) if added else summed


def _summed(tensor: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """`tensor.sum(dims, keepdim)`; of most tensors there is nothing to ask before the op can run."""
    kind = tensor._kind
    if type(tensor) in PLAIN_TYPES and kind.is_cpu and kind.differentiable:
        return SLOTS.sum_over(tensor, dims, keepdim)
    return tensor.sum(dims, keepdim)


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to the shape `to`."""
    if len(shape) > len(to):
        return False
    if to[len(to) - len(shape) :] == shape:
        return True
    return all(a in (b, 1) for a, b in zip(reversed(shape), reversed(to), strict=False))
