"""The rules that follow from an op's record: what its `axes` say of the dimensions that are independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import result_type_of
from ..._dispatch.axes import Along, Elements, Images, Last
from ..._dispatch.op import OPS, Op
from .level import BatchedTensor, Rule, Vmap

_NONE, _MEAN = 0, 1


def rule_by_axes(op: Op) -> Rule:
    """The rule of an op whose record has `axes`."""
    axes = op.axes
    if isinstance(axes, Elements):
        return loss if axes.reduction else broadcast if axes.by_first else aligned
    if isinstance(axes, Last):
        return as_it_is if len(op.tensor_positions) == 1 else matrices
    return along if isinstance(axes, Along) else by_plane if isinstance(axes, Images) else whole


def rank(tensor: Tensor) -> int:
    """The number of dimensions of one example."""
    count: int = tensor._array.ndim
    return count


def shift(dim: Any, ndim: int) -> Any:
    """A dimension of an example, or several, as those of the value."""
    if isinstance(dim, int):
        return dim % ndim + 1 if ndim else 1
    return tuple(shift(each, ndim) for each in dim)


def with_ranks(level: Vmap, tensor: Any, ndim: int) -> Any:
    """The value of a tensor with dimensions of size 1 after the first, until an example has `ndim` of them."""
    if not level.has(tensor):
        return tensor
    value = tensor.value
    missing = ndim - (value._array.ndim - 1)
    return value if missing <= 0 else value.reshape(level.size, *[1] * missing, *value._array.shape[1:])


def all_with_ranks(level: Vmap, args: Sequence[Any]) -> list[Any]:
    """The values of all tensors, each with the examples in front and as many dimensions as the largest has."""
    ndim = max(rank(each) for each in args if isinstance(each, Tensor))
    return [
        level.front(each).reshape(level.size, *[1] * (ndim - rank(each)), *each._array.shape)
        if isinstance(each, Tensor)
        else each
        for each in args
    ]


# ----- elements -----------------------------------------------------------------------------------------------------


def aligned(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op whose tensors are broadcast: examples get as many dimensions as the largest has."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    ndim = max([each._array.ndim for each in tensors])
    given = list(args)
    common = None
    if len(tensors) > 1 and any(each._kind is not tensors[0]._kind for each in tensors[1:]):
        common = result_type_of(*tensors)
    for position, each in enumerate(args):
        if type(each) is BatchedTensor and each.level is level:
            value = with_ranks(level, each, ndim)
            if common is not None and not each._array.ndim and each.dtype.is_complex <= common.is_complex:
                value = value.to(common)  # a 0-d tensor has no say in the dtype; its value has dimensions
            given[position] = value
    return op(*given)


def broadcast(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """`aligned`, for ops whose first tensor decides the shape: that has all examples."""
    ndim = max([each._array.ndim for each in args if isinstance(each, Tensor)])
    given = list(args)
    first = True
    for position, each in enumerate(args):
        if isinstance(each, Tensor):
            if first and not level.has(each):
                each = level.wrapped(level.front(each))
            first = False
            given[position] = with_ranks(level, each, ndim)
    return op(*given)


def loss(level: Vmap, op: Op, args: Sequence[Any]) -> Tensor:
    """An elementwise loss: computed without its reduction, which is then each example's own."""
    axes: Any = op.axes
    at = op.parameters.index(axes.reduction)
    given = all_with_ranks(level, args)
    reduction, given[at] = args[at], _NONE
    return reduced(op(*given), reduction)


def reduced(losses: Tensor, reduction: int) -> Tensor:
    """The reduction of the losses of each example."""
    dims = tuple(range(1, losses._array.ndim))
    if reduction == _NONE or not dims:
        return losses
    return losses.mean(dims) if reduction == _MEAN else losses.sum(dims)


# ----- the last dimensions ------------------------------------------------------------------------------------------


def as_it_is(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op of one tensor that takes any leading dimensions."""
    return op(*[level.value(each) for each in args])


def matrices(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op of several tensors whose last dimensions are matrices, or vectors, and the others are broadcast."""
    vectors = op.axes.vectors if isinstance(op.axes, Last) else ()
    lead = {
        position: rank(each) - (1 if op.parameters[position] in vectors else 2)
        for position, each in enumerate(args)
        if isinstance(each, Tensor)
    }
    most = max(lead.values())
    given = list(args)
    for position, own in lead.items():
        each = args[position]
        given[position] = level.front(each).reshape(level.size, *[1] * (most - own), *each._array.shape)
    return op(*given)


# ----- along dimensions ---------------------------------------------------------------------------------------------


def along(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op of one tensor or of several alike, some of whose parameters are dimensions."""
    axes = op.axes
    assert isinstance(axes, Along)
    given = list(args)
    ndim = rank(args[op.tensor_positions[0]])
    flat = ndim == 0 and not axes.extra and axes.sizes is None
    for position in op.tensor_positions:
        if args[position] is not None:
            value = level.front(args[position])
            given[position] = value.unsqueeze(1) if flat else value
    if axes.sizes is not None:
        at = op.parameters.index(axes.sizes)
        ndim = len(args[at])
        given[at] = (level.size, *args[at])
    for name in axes.dims:
        at = op.parameters.index(name)
        dim = args[at]
        if dim is None:
            dim = tuple(range(ndim))
        if flat and not isinstance(dim, int):
            dim = (0,)
        given[at] = shift(dim, ndim + axes.extra)
    result = op(*given)
    return flattened(result) if flat else result


def flattened(result: Any) -> Any:
    """Results of which one example is a number."""
    if isinstance(result, Tensor):
        return result.reshape(result._array.shape[0])
    return type(result)(flattened(each) for each in result)


def whole(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op over all elements, by the op that does the same along dimensions."""
    axes: Any = op.axes
    value = args[0].value
    if not axes.flat:
        value = value if rank(args[0]) else value.unsqueeze(1)
        return OPS[axes.along](value, tuple(range(1, value._array.ndim)), False, *args[1:])
    result = OPS[axes.along](value.reshape(level.size, args[0]._array.size), 1, False, *args[1:])
    return result[0] if type(result) is tuple else result


# ----- images -------------------------------------------------------------------------------------------------------


def folded(level: Vmap, tensor: Any, kept: int) -> tuple[Any, tuple[int, ...]]:
    """All examples of a tensor with its dimensions before the last `kept` ones made one, and those dimensions."""
    value = level.front(tensor)
    shape = value._array.shape
    lead = shape[: len(shape) - kept]
    return value.reshape(math.prod(lead), *shape[len(lead) :]), lead


def unfolded(result: Any, lead: tuple[int, ...]) -> Any:
    """Results with the dimensions `lead` in place of their first."""
    if isinstance(result, Tensor):
        return result.reshape(*lead, *result._array.shape[1:])
    return None if result is None else tuple(unfolded(each, lead) for each in result)


def by_plane(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op of images, of which the examples are more."""
    axes = op.axes
    assert isinstance(axes, Images)
    last = axes.dimensions(op.name, args)
    given = list(args)
    lead: tuple[int, ...] = ()
    for position, each in enumerate(args):
        if isinstance(each, Tensor):
            given[position], lead = folded(level, each, last)
    if axes.sizes is not None:
        at = op.parameters.index(axes.sizes)
        if len(args[at]) > last:
            given[at] = (level.size * args[at][0], *args[at][1:])
    return unfolded(op(*given), lead)
