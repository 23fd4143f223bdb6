"""Derivatives that are operators of `torch.ops.aten` with arguments of their own.

`_relatives.py` derives all those whose arguments are the gradient and the arguments of their forward operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from .._core.tensor import Tensor
from .._dispatch.public.overloads import overload_named
from .._ops.nn.layer_norm import _group_norm_gradients, _layer_norm_gradients
from .._ops.nn.normalization import _batch_norm_gradients
from .._ops.reduce.softmax import _log_softmax_backward
from .._ops.shape.view import wrap_dim
from ..jit._language.numbers_of import dtype_of_number
from ._differentiated import gradients_of


def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of a convolution by its input, its weight and its bias, as far as the mask asks for them."""
    options = (stride, padding, dilation, transposed, output_padding, groups)
    asked = [number for number in range(2) if output_mask[number]]
    found = gradients_of(torch.convolution, [input, weight, None, *options], asked, grad_output)
    of_bias = grad_output.sum([0, *range(2, grad_output.ndim)]) if output_mask[2] else None
    return found.get(0), found.get(1), of_bias


def linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The gradients of a linear layer by its input, its weight and its bias."""
    flat = grad_output.reshape(-1, grad_output.shape[-1])
    return (
        grad_output @ weight if output_mask[0] else None,
        flat.T @ self.reshape(-1, self.shape[-1]) if output_mask[1] else None,
        flat.sum(0) if output_mask[2] else None,
    )


# Normalisations -------------------------------------------------------------------------------------------------------


def native_layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Any,
    bias: Any, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of layer normalisation by its input, weight and bias."""
    parts = [grad_out, None, None], tuple(output_mask), input, tuple(normalized_shape), weight, bias, mean, rstd
    return tuple(_layer_norm_gradients(*parts))


def native_group_norm_backward(
    grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Any, N: int, C: int, HxW: int, group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of group normalisation by its input, weight and bias."""
    sizes = N, C, HxW, group
    return tuple(
        _group_norm_gradients(
            [grad_out, None, None], tuple(output_mask), input, weight, *sizes, 0.0, mean, rstd
        )
    )  # fmt: skip


def native_batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Any, running_mean: Any, running_var: Any, save_mean: Any,
    save_invstd: Any, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of batch normalisation by its input, weight and bias."""
    statistics = running_mean, running_var, train, eps, save_mean, save_invstd
    return tuple(_batch_norm_gradients([grad_out, None, None, None], tuple(output_mask), input, weight, *statistics))


def batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_var: Any,
    update: bool, eps: float, output_mask: Sequence[bool], reserve: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """`native_batch_norm_backward` with the memory that a kernel of a device reserves."""
    rest = running_mean, running_var, save_mean, save_var, update, eps, output_mask
    return native_batch_norm_backward(grad_out, input, weight, *rest)


# From results ---------------------------------------------------------------------------------------------------------


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of `log_softmax` from its result."""
    gradient = _log_softmax_backward(grad_output, output, wrap_dim(dim, grad_output.dim()))
    return gradient.to(dtype_of_number(input_dtype))


def elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Any:
    """The gradient of `elu` from its input or its result."""
    slope = input_scale * scale
    if is_result:
        negative = grad_output * input_scale * (self_or_result + alpha * scale)
    else:
        negative = grad_output * slope * alpha * (self_or_result * input_scale).exp()
    return torch.where(self_or_result <= 0, negative, grad_output * scale)


def rrelu_with_noise_backward(
    grad_output: Tensor, self: Tensor, noise: Tensor, lower: Any, upper: Any, training: bool, self_is_result: bool
) -> Any:
    """The gradient of `rrelu_with_noise`."""
    if training and upper - lower > 1e-6:
        return noise * grad_output
    return torch.where(self > 0, grad_output, grad_output * ((lower + upper) / 2))


def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient of `masked_scatter` by what is scattered."""
    taken = grad_output.masked_select(mask)
    result = grad_output.new_zeros(list(sizes)).flatten()
    result[: taken.numel()] = taken
    return result.reshape(list(sizes))


def _by_places(dims: int) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, self: Tensor, kernel_size: Any, output_size: Any, indices: Tensor) -> Any:
        """The gradient of a pooling that takes elements: it goes where they came from."""
        lead = self.shape[: self.ndim - dims]
        places = indices.reshape(*lead, -1)
        result = self.new_zeros(self.shape).reshape(*lead, -1)
        return result.scatter_add_(-1, places, grad_output.reshape(*lead, -1)).reshape(self.shape)

    return backward


fractional_max_pool2d_backward, fractional_max_pool3d_backward = map(_by_places, (2, 3))


def embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    """The gradient of an embedding by its weight."""
    args = grad, indices, num_weights, padding_idx, scale_grad_by_freq
    dense: Tensor = overload_named("aten", "embedding_dense_backward", "default")(*args)
    return dense.to_sparse(1) if sparse else dense


def upsample_linear1d_backward(
    grad_output: Tensor, output_size: Any, input_size: Any, align_corners: bool, scales: float | None = None
) -> Any:
    """The gradient of `upsample_linear1d`, which is linear in its input."""
    upsample_linear1d = overload_named("aten", "upsample_linear1d", "default")
    args = [grad_output.new_zeros(list(input_size)), output_size, align_corners, scales]
    return gradients_of(upsample_linear1d, args, [0], grad_output)[0]


def infinitely_differentiable_gelu_backward(grad: Tensor, self: Tensor) -> Any:
    """The gradient of `gelu`."""
    return gradients_of(torch.nn.functional.gelu, [self], [0], grad)[0]


def masked_select_backward(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    """The gradient of `masked_select`."""
    return input.new_zeros(input.shape).masked_scatter(mask, grad)


def cumprod_backward(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Any:
    """The gradient of `cumprod`."""
    return gradients_of(torch.cumprod, [input, dim], [0], grad)[0]


def cummaxmin_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    """The gradient of `cummax` and `cummin`: it goes where the elements came from."""
    return input.new_zeros(input.shape).scatter_add(dim, indices, grad) if input.numel() else input


BACKWARDS: dict[str, Callable[..., Any]] = {
    name: each
    for name, each in globals().items()
    if getattr(each, "__module__", "") == __name__ and not isinstance(each, type)
}
"""By the names of operators."""
