"""Derivatives that take what PyTorch's kernels keep: bags of embeddings, recurrent cells, second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named
from .._ops.nn.embedding import _bag_gradient, _sample_weight_gradient, _sparse_gradient
from .._ops.nn.weight_norm import _gradient_of_g, _gradient_of_v
from ._differentiated import gradients_of

# Embeddings -----------------------------------------------------------------------------------------------------------


def _embedding_bag_backward(
    grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
    num_weights: int, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Any,
    padding_idx: int = -1,
) -> Any:  # fmt: skip
    """The gradient of `_embedding_bag` by its weight."""
    kept = offset2bag, bag_size, maximum_indices, scale_grad_by_freq, sparse, num_weights
    return _bag_gradient(grad, indices, mode, padding_idx, per_sample_weights, *kept)


def _embedding_bag_dense_backward(
    grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor, num_weights: int,
    scale_grad_by_freq: bool, mode: int, per_sample_weights: Any, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """The gradient of `_embedding_bag` by its weight, as a dense tensor."""
    kept = offset2bag, bag_size, maximum_indices, scale_grad_by_freq, False, num_weights
    return _bag_gradient(grad, indices, mode, padding_idx, per_sample_weights, *kept)


def _embedding_bag_sparse_backward(
    grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, num_weights: int,
    scale_grad_by_freq: bool, mode: int, per_sample_weights: Any, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """The gradient of `_embedding_bag` by its weight, as a sparse tensor."""
    kept = offset2bag, bag_size, None, scale_grad_by_freq, True, num_weights
    return _bag_gradient(grad, indices, mode, padding_idx, per_sample_weights, *kept)


def _embedding_bag_per_sample_weights_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
    padding_idx: int = -1,
) -> Any:  # fmt: skip
    """The gradient of `_embedding_bag` by the weights of the samples."""
    return _sample_weight_gradient(grad, weight, indices, padding_idx, offset2bag)


def embedding_sparse_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of an embedding by its weight, as a sparse tensor."""
    return _sparse_gradient(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


# Weight normalisation -------------------------------------------------------------------------------------------------


def _weight_norm_interface_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Any, Any]:
    """The gradients of a weight by its direction and by its length."""
    return _gradient_of_v(grad_w, saved_v, saved_g, dim), _gradient_of_g(grad_w, saved_v, dim)


_weight_norm_differentiable_backward = _weight_norm_interface_backward


# Recurrent cells ------------------------------------------------------------------------------------------------------


def _thnn_differentiable_lstm_cell_backward(
    grad_hy: Any, grad_cy: Any, input_gates: Tensor, hidden_gates: Tensor, input_bias: Any, hidden_bias: Any,
    cx: Tensor, cy: Tensor,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of an LSTM's cell by its gates, its state and its biases."""
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    taken, forgotten, fresh, shown = gates.chunk(4, 1)
    taken, forgotten, fresh, shown = taken.sigmoid(), forgotten.sigmoid(), fresh.tanh(), shown.sigmoid()
    bent = cy.tanh()
    of_state = 0 if grad_hy is None else grad_hy * shown * (1 - bent * bent)
    of_state = of_state if grad_cy is None else of_state + grad_cy
    parts = (
        of_state * fresh * taken * (1 - taken),
        of_state * cx * forgotten * (1 - forgotten),
        of_state * taken * (1 - fresh * fresh),
        (cx * 0 if grad_hy is None else grad_hy * bent) * shown * (1 - shown),
    )
    grad = function_named("", "cat")(parts, 1)
    of_bias = None if input_bias is None else grad.sum(0)
    return grad, grad, of_state * forgotten, of_bias, of_bias


def _thnn_differentiable_gru_cell_backward(
    grad_hy: Tensor, input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Any, hidden_bias: Any
) -> tuple[Any, ...]:
    """The gradients of a GRU's cell by its gates, its state and its biases."""
    inner = input_gates if input_bias is None else input_gates + input_bias
    outer = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
    (reset_in, update_in, new_in), (reset_out, update_out, new_out) = inner.chunk(3, 1), outer.chunk(3, 1)
    reset, update = (reset_in + reset_out).sigmoid(), (update_in + update_out).sigmoid()
    new = (new_in + reset * new_out).tanh()
    of_new = grad_hy * (1 - update) * (1 - new * new)
    of_update = grad_hy * (hx - new) * update * (1 - update)
    of_reset = of_new * new_out * reset * (1 - reset)
    cat = function_named("", "cat")
    of_input, of_hidden = cat((of_reset, of_update, of_new), 1), cat((of_reset, of_update, of_new * reset), 1)
    biases = (None, None) if input_bias is None else (of_input.sum(0), of_hidden.sum(0))
    return of_input, of_hidden, grad_hy * update, *biases


# Convolutions ---------------------------------------------------------------------------------------------------------


def conv_tbc_backward(self: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> tuple[Any, ...]:
    """The gradients of `conv_tbc` by its input, its weight and its bias."""
    found = gradients_of(function_named("", "conv_tbc"), [input, weight, bias, pad], range(3), self)
    return tuple(found[number] for number in range(3))


def _slow_conv2d_backward(
    grad_output: Tensor, self: Tensor, weight: Tensor, kernel_size: Any, stride: Any, padding: Any,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of a convolution of images by its input, its weight and its bias."""
    from ._backwards import convolution_backward

    return convolution_backward(grad_output, self, weight, [0], stride, padding, [1, 1], False, [0, 0], 1, output_mask)


def _convolution_double_backward(
    ggI: Any, ggW: Any, ggb: Any, gO: Tensor, weight: Tensor, self: Tensor, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of a convolution's gradients by the gradient that came in, by the input and by the weight."""
    convolution = function_named("", "convolution")
    options = stride, padding, dilation, transposed, output_padding, groups
    parts = [] if ggI is None else [convolution(ggI, weight, None, *options)]
    parts += [] if ggW is None else [convolution(self, ggW, None, *options)]
    parts += [] if ggb is None else [ggb.reshape(-1, *[1] * (weight.ndim - 2)).expand(gO.shape)]
    of_input = of_weight = None
    if output_mask[1] and ggW is not None:
        of_input = gradients_of(convolution, [self, ggW, None, *options], [0], gO)[0]
    if output_mask[2] and ggI is not None:
        of_weight = gradients_of(convolution, [ggI, weight, None, *options], [1], gO)[1]
    return (sum(parts[1:], parts[0]) if parts and output_mask[0] else None), of_input, of_weight


# Forward mode ---------------------------------------------------------------------------------------------------------


def glu_jvp(glu: Tensor, x: Tensor, dx: Tensor, dim: int) -> Any:
    """The tangent of `glu` from its result and its input."""
    gate, (tangent, of_gate) = x.chunk(2, dim)[1].sigmoid(), dx.chunk(2, dim)
    return tangent * gate + glu * (of_gate - gate * of_gate)


def glu_backward_jvp(
    grad_x: Tensor, grad_glu: Tensor, x: Tensor, dgrad_glu: Tensor, dx: Tensor, dim: int
) -> Any:  # fmt: skip
    """The tangent of the gradient of `glu`."""
    (value, gate), (of_value, of_gate) = x.chunk(2, dim), dx.chunk(2, dim)
    gate = gate.sigmoid()
    slope = gate * (1 - gate)
    first = dgrad_glu * gate + grad_glu * slope * of_gate
    second = dgrad_glu * value * slope + grad_glu * (of_value * slope + value * slope * (1 - 2 * gate) * of_gate)
    return function_named("", "cat")((first, second), dim)


# By shape -------------------------------------------------------------------------------------------------------------


def value_selecting_reduction_backward(
    grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool
) -> Any:
    """The gradient of a reduction that takes elements: it goes where they came from."""
    if sizes and not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(list(sizes)).scatter(dim, indices, grad)


def affine_grid_generator_backward(grad: Tensor, size: Sequence[int], align_corners: bool) -> Any:
    """The gradient of `affine_grid`, which is linear in its matrices."""
    grid = function_named("nn.functional", "affine_grid")
    theta = grad.new_zeros((size[0], len(size) - 2, len(size) - 1))
    return gradients_of(grid, [theta, list(size), align_corners], [0], grad)[0]


GRADIENTS: dict[str, Callable[..., Any]] = {
    name: each
    for name, each in globals().items()
    if getattr(each, "__module__", "") == __name__ and not isinstance(each, type)
}
"""By the names of operators."""
