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


def conv1d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` by its input."""
    return _by_input(functional.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` by its weight."""
    return _by_weight(functional.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` by its input."""
    return _by_input(functional.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` by its weight."""
    return _by_weight(functional.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` by its input."""
    return _by_input(functional.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` by its weight."""
    return _by_weight(functional.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)
