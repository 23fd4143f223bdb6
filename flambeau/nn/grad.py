"""Gradients of convolutions, under the names of `torch.nn.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._ops.create.constants import zeros
from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from . import functional

Convolution = Callable[..., Tensor]


def _by_input(
    convolve: Convolution, input_size: Sequence[int] | None, weight: Tensor, grad_output: Tensor, *options: Any
) -> Tensor:
    if input_size is None:
        raise ValueError("the gradient by the input needs the input's size")
    with enable_grad():
        start = zeros(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device).requires_grad_()
        found: Tensor = grad(convolve(start, weight.detach(), None, *options), start, grad_output)[0]
        return found


def _by_weight(
    convolve: Convolution, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, *options: Any
) -> Tensor:
    with enable_grad():
        start = zeros(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device).requires_grad_()
        found: Tensor = grad(convolve(input.detach(), start, None, *options), start, grad_output)[0]
        return found


def _gradients(name: str) -> tuple[Convolution, Convolution]:
    """The functions of the gradients of a convolution: by its input and by its weight."""
    convolve: Convolution = getattr(functional, name)

    def by_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _by_input(convolve, input_size, weight, grad_output, stride, padding, dilation, groups)

    def by_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _by_weight(convolve, input, weight_size, grad_output, stride, padding, dilation, groups)

    for function, what in ((by_input, "input"), (by_weight, "weight")):
        function.__name__ = function.__qualname__ = f"{name}_{what}"
        function.__doc__ = f"The gradient of `{name}` by its {what}."
    return by_input, by_weight


conv1d_input, conv1d_weight = _gradients("conv1d")
conv2d_input, conv2d_weight = _gradients("conv2d")
conv3d_input, conv3d_weight = _gradients("conv3d")
