"""Views and rearrangements: dimensions are counted from one further on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core.device import contiguous_format
from ..._dispatch.op import OPS, Op
from .by_axes import rank, shift
from .level import Vmap
from .rules import decomposition, rule


def _size(level: Vmap, tensor: Any, size: Sequence[int]) -> tuple[int, ...]:
    """A shape of one example, with the size that it leaves open, as one of the value."""
    if -1 in size:
        others = math.prod(each for each in size if each != -1)
        size = [tensor._array.size // max(others, 1) if each == -1 else each for each in size]
    return (level.size, *size)


@rule("unfold", "unfold_copy")
def _unfold(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim, size, step = args
    if not rank(tensor):
        return tensor.value.unsqueeze(1)[:, :size]
    return op(tensor.value, shift(dim, rank(tensor)), size, step)


@rule("unfold_backward")
def _unfold_backward(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    grad, sizes, dim, size, step = args
    if not sizes:
        return grad.value.sum(1)
    return op(grad.value, (level.size, *sizes), shift(dim, len(sizes)), size, step)


@rule("view", "reshape_alias", "unsafe_view", "view_copy")
def _view(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    return args[0].value.reshape(_size(level, *args))


@rule("expand", "expand_copy")
def _expand(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, size = args
    shape = tensor._array.shape
    missing = len(size) - len(shape)
    value = tensor.value.reshape(level.size, *[1] * missing, *shape) if missing else tensor.value
    return op(value, (level.size, *size))


@rule("permute", "permute_copy")
def _permute(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dims = args
    return op(tensor.value, (0, *shift(dims, rank(tensor))))


@rule("t", "t_", "t_copy")
def _t(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    value = args[0].value
    return value.transpose(-1, -2) if rank(args[0]) == 2 else value.view_as(value)


@rule("squeeze_all", "squeeze_all_", "squeeze_copy")
def _squeeze(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    return args[0].value.reshape(level.size, *[each for each in args[0]._array.shape if each != 1])


@rule("squeeze_dim", "squeeze_dim_", "squeeze_dim_copy", "squeeze_dims", "squeeze_dims_", "squeeze_dims_copy")
def _squeeze_dim(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim = args
    if not rank(tensor):
        return tensor.value.view_as(tensor.value)
    return op(tensor.value, shift(dim, rank(tensor)))


@rule("as_strided", "as_strided_", "as_strided_copy")
def _as_strided(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """By the strides of contiguous examples, as one example says that it has them."""
    tensor, size, stride, offset = args
    value = tensor.value.contiguous()
    step = value.stride(0) if level.size > 1 else tensor._array.size
    start = value.storage_offset() + (offset or 0)
    return value.as_strided((level.size, *size), (step, *stride), start)


@rule("view_dtype")
def _view_dtype(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dtype = args
    if rank(tensor) or dtype.itemsize == tensor.dtype.itemsize:
        return op(tensor.value, dtype)
    return op(tensor, dtype)  # refuses a 0-d tensor


@rule("repeat")
def _repeat(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, repeats = args
    missing = len(repeats) - rank(tensor)
    value = tensor.value.reshape(level.size, *[1] * missing, *tensor._array.shape)
    return op(value, (1, *repeats))


@rule("roll")
def _roll(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, shifts, dims = args
    if not len(dims):
        rolled = op(tensor.value.reshape(level.size, -1), shifts, (1,))
        return rolled.reshape(level.size, *tensor._array.shape)
    return op(tensor.value, shifts, shift(dims, rank(tensor)))


@rule("trace")
def _trace(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    return args[0].value.diagonal(0, -2, -1).sum(-1)


@rule("cat")
def _cat(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensors, dim, dtype = args
    # A tensor of shape (0,) may stand among tensors of any shape.
    kept = [each for each in tensors if each._array.shape != (0,)] or list(tensors)
    return op([level.front(each) for each in kept], shift(dim, rank(kept[0])), dtype)


@rule("stack")
def _stack(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensors, dim, dtype = args
    return op([level.front(each) for each in tensors], shift(dim, rank(tensors[0]) + 1), dtype)


@rule("chunks")
def _chunks(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensors, dim, count = args
    return op([level.front(each) for each in tensors], shift(dim, rank(tensors[0])), count)


@rule("block_diag")
def _block_diag(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """Each block between zeros on its left and right, above one another."""
    tensors, _ = args
    blocks = []
    for each in tensors:
        value = level.front(each)
        ndim = rank(each)
        shape = (1, 1) if not ndim else (1, *each._array.shape) if ndim == 1 else each._array.shape
        blocks.append(value.reshape(level.size, *shape))
    width = sum(each._array.shape[2] for each in blocks)
    rows, left = [], 0
    for each in blocks:
        size = each._array.shape[2]
        rows.append(OPS["constant_pad_nd"](each, (left, width - left - size), 0))
        left += size
    return OPS["cat"](rows, 1, args[1])


@decomposition("as_strided_scatter")
def _as_strided_scatter(self: Any, src: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    result = self.clone(memory_format=contiguous_format)
    result.as_strided(size, stride, storage_offset).copy_(src)
    return result
