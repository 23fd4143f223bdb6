"""Collectives as functions: their results are new tensors. Each waits for its result before it returns."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .nn import functional
from .reductions import ReduceOp

AsyncCollectiveTensor = Tensor
"""Results that are still on their way in PyTorch; here they have arrived."""
_OPS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX,
    "band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR,
}  # fmt: skip


def _group(group: Any) -> Any:
    """A process group, also where a mesh of one dimension, or a mesh and a dimension, stands for it."""
    if isinstance(group, tuple) and len(group) == 2:
        return group[0].get_group(group[1])
    return group.get_group() if hasattr(group, "get_group") and hasattr(group, "mesh") else group


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which has arrived."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The combination of the tensors of all processes."""
    return functional.all_reduce(self, _OPS[reduceOp.lower()], _group(group))


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one process."""
    return functional.broadcast(self, src, _group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along a dimension."""
    from .._ops.shape.join import cat

    return cat(list(functional.all_gather(self, _group(group))), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """The part for this process, along a dimension, of the combination of the tensors of all."""
    from ._world import group_of

    found = _group(group)
    parts = list(self.chunk(group_of(found).size(), scatter_dim))
    return functional.reduce_scatter(parts[0], parts, _OPS[reduceOp.lower()], found)


def all_to_all_single(
    self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Tensor:
    """The parts that the tensors of all processes have for this one."""
    rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    output = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, _group(group))


all_to_all_single_autograd = all_to_all_single
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
