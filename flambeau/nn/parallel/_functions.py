"""What `DataParallel` sends between devices, so that gradients find the way back."""

from __future__ import annotations

import warnings
from itertools import chain
from typing import Any

from ..._core.device import device
from ..._core.tensor import Tensor
from ...autograd.function import Function
from . import comm
from ._devices import DeviceLike


class Broadcast(Function):
    """Tensors to every one of `places`; the gradients of the copies are summed."""

    @staticmethod
    def forward(ctx: Any, places: list[device], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.count = len(inputs)
        ctx.source = places[0]
        outputs = comm.broadcast_coalesced(inputs, places)
        ctx.mark_non_differentiable(
            *(copies[i] for i, needed in enumerate(ctx.needs_input_grad[1:]) if not needed for copies in outputs)
        )
        return tuple(chain.from_iterable(outputs))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, *ReduceAddCoalesced.apply(ctx.source, ctx.count, *grads)


class ReduceAddCoalesced(Function):
    """The sums of tensors from several devices; `inputs` are `count` tensors of one device after the other."""

    @staticmethod
    def forward(ctx: Any, destination: device, count: int, *inputs: Tensor) -> tuple[Tensor, ...]:
        groups = [inputs[start : start + count] for start in range(0, len(inputs), count)]
        ctx.places = [group[0].device for group in groups]
        return comm.reduce_add_coalesced(groups, destination)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *Broadcast.apply(ctx.places, *grads)


class Scatter(Function):
    """A tensor in pieces along `dim`, one for each of `target_gpus`; the gradients are joined."""

    @staticmethod
    def forward(
        ctx: Any, target_gpus: list[device], chunk_sizes: list[int] | None, dim: int, input: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.dim = dim
        ctx.source = input.device
        return comm.scatter(input, target_gpus, chunk_sizes, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, Gather.apply(ctx.source, ctx.dim, *grads)


class Gather(Function):
    """Tensors of several devices joined along `dim` on one; the gradient is cut into their sizes again."""

    @staticmethod
    def forward(ctx: Any, target_device: DeviceLike, dim: int, *inputs: Tensor) -> Tensor:
        ctx.numbers = dim == 0 and all(each.dim() == 0 for each in inputs)
        if ctx.numbers:
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze "
                "and return a vector.",
                stacklevel=2,
            )
            inputs = tuple(each.view(1) for each in inputs)
        ctx.dim = dim
        ctx.places = [each.device for each in inputs]
        ctx.sizes = [each.size(dim) for each in inputs]
        return comm.gather(inputs, dim, target_device)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        pieces = Scatter.apply(ctx.places, ctx.sizes, ctx.dim, grad_output)
        return None, None, *(piece[0] if ctx.numbers else piece for piece in pieces)
