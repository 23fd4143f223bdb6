"""Hooks that make means of gradients as the wrapper itself does, and some that send them in half precision."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import bfloat16, dtype, float16, float32
from ...._core.tensor import Tensor
from ... import _calls
from ..._world import group_of


class DefaultState:
    """Over whom the mean is made. Sums are divided before and after they are made, so that they do not overflow."""

    def __init__(self, process_group: Any) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = group_of(process_group).size()
        self.gradient_predivide_factor = _first_divisor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor


class LowPrecisionState(DefaultState):
    """The dtype that gradients get back after they were sent in half precision."""

    def __init__(self, process_group: Any, parameter_type: dtype = float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _first_divisor(size: int) -> float:
    """A power of two near the square root."""
    factor = 1
    while size % factor == 0 and size / factor > factor:
        factor *= 2
    return float(factor)


def _divide(values: Tensor, factor: float) -> None:
    if factor > 1:
        values.div_(factor)


def allreduce_hook(state: DefaultState, grad: Tensor) -> None:
    """The mean of all processes, in place."""
    _divide(grad, state.gradient_predivide_factor)
    _calls.all_reduce(grad, group=state.process_group)
    _divide(grad, state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: Tensor, output: Tensor) -> None:
    """The part of the mean that belongs to this process."""
    _divide(grad, state.gradient_predivide_factor)
    _calls.reduce_scatter_tensor(output, grad, group=state.process_group)
    _divide(output, state.gradient_postdivide_factor)


def _compressed(kind: dtype, state: LowPrecisionState, grad: Tensor, output: Tensor | None) -> None:
    short = grad.to(kind)
    if output is None:
        allreduce_hook(state, short)
        grad.copy_(short)
        return
    part = output.to(kind)
    reduce_scatter_hook(state, short, part)
    output.copy_(part)


def fp16_compress_hook(state: LowPrecisionState, grad: Tensor, output: Tensor | None = None) -> None:
    """The mean, sent and added up in float16."""
    _compressed(float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: Tensor, output: Tensor | None = None) -> None:
    """The mean, sent and added up in bfloat16."""
    _compressed(bfloat16, state, grad, output)
