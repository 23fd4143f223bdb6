"""Collectives as functions with derivatives: they return new tensors, and their backward passes are collectives too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ...autograd.function import Function
from .. import _calls
from .._world import group_of
from ..reductions import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip

_SUM = ReduceOp.SUM


def _like(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [each.new_empty(each.shape) for each in tensors]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone().contiguous()
        _calls.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        result = tensor.detach().clone().contiguous()
        _calls.broadcast(result, source, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = _Reduce.apply(ctx.source, _SUM, ctx.group, grad)
        return None, None, total if group_of(None).rank() == ctx.source else total * 0


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, target: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.target, ctx.group = target, group
        result = tensor.detach().clone().contiguous()
        _calls.reduce(result, target, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.target, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Any:
        ctx.group = group
        results = [tensor.new_empty(tensor.shape) for _ in range(group_of(group).size())]
        _calls.all_gather(results, tensor.detach().contiguous(), group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _ReduceScatter.apply(_SUM, ctx.group, *grads)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, *tensors: Tensor) -> Tensor:
        ctx.group = group
        result = tensors[group_of(group).rank()].new_empty(tensors[group_of(group).rank()].shape)
        _calls.reduce_scatter(result, [each.detach().contiguous() for each in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_AllGather.apply(ctx.group, grad)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, count: int, *tensors: Tensor) -> Any:
        ctx.group, ctx.count = group, count
        ctx.shapes = [each.shape for each in tensors[count:]]
        results = _like(tensors[:count])
        _calls.all_to_all(results, [each.detach().contiguous() for each in tensors[count:]], group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        spaces = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *[None] * ctx.count, *_AllToAll.apply(ctx.group, len(spaces), *spaces, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, outs: Any, ins: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.outs, ctx.ins, ctx.shape = group, outs, ins, tensor.shape
        result = output.new_empty(output.shape)
        _calls.all_to_all_single(result, tensor.detach().contiguous(), outs, ins, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        back = _AllToAllSingle.apply(ctx.group, grad.new_empty(ctx.shape), ctx.ins, ctx.outs, grad.contiguous())
        return None, None, None, None, back


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, target: int, group: Any, tensor: Tensor) -> Any:
        ctx.target, ctx.group = target, group
        here = group_of(None).rank() == target
        results = [tensor.new_zeros(tensor.shape) for _ in range(group_of(group).size())]
        _calls.gather(tensor.detach().contiguous(), results if here else None, target, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.target, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        here = group_of(None).rank() == source
        result = tensors[0].new_empty(tensors[0].shape)
        given = [each.detach().contiguous() for each in tensors] if here else None
        _calls.scatter(result, given, source, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.source, ctx.group, grad)


def all_reduce(tensor: Tensor, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combination of the tensors of all processes."""
    result: Tensor = _AllReduce.apply(op, group, tensor)
    return result


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of one process."""
    result: Tensor = _Broadcast.apply(src, group, tensor)
    return result


def reduce(tensor: Tensor, dst: int, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combination of the tensors of all processes, on one of them."""
    result: Tensor = _Reduce.apply(dst, op, group, tensor)
    return result


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    results: tuple[Tensor, ...] = _AllGather.apply(group, tensor)
    return results


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, on one of them."""
    results: tuple[Tensor, ...] = _Gather.apply(dst, group, tensor)
    return results


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor that one process has for this one."""
    result: Tensor = _Scatter.apply(src, group, *tensors)
    return result


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = _SUM, group: Any = None) -> Tensor:
    """The combination of the tensors that all processes have for this one."""
    result: Tensor = _ReduceScatter.apply(op, group, *input_list)
    return result


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensors that all processes have for this one."""
    count = len(output_tensor_list)
    results: tuple[Tensor, ...] = _AllToAll.apply(group, count, *output_tensor_list, *input_tensor_list)
    return results


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    """The parts that the tensors of all processes have for this one."""
    result: Tensor = _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)
    return result
