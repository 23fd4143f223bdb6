"""Functions of PyTorch's first years, under the names of `torch.autograd._functions`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor
from .function import Function

__all__ = ["Resize"]


class Resize(Function):
    """A tensor with the same elements and other sizes."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Sequence[int]) -> Tensor:
        ctx.sizes, ctx.numel = sizes, math.prod(sizes)
        if tensor.numel() != ctx.numel:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({ctx.numel} elements in total), but the given "
                f"tensor has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} elements). It "
                "can only change the shape of a given tensor, while preserving the number of elements."
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        return grad_output.contiguous().view(ctx.input_sizes), None
