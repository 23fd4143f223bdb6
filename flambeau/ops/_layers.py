"""Layers under the names of PyTorch's kernels: convolutions by algorithm, attention in one call, packed sequences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .._core.dtype import bool_, int64, uint8
from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named
from ._differentiated import gradients_of


def _called(space: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """What a public function gives, found when it is needed: its family may not be loaded yet."""
    return function_named(space, name)(*args, **kwargs)


def _convolve(transposed: bool = False) -> Callable[..., Any]:
    def convolve(
        self: Tensor, weight: Tensor, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        """A convolution, by whatever algorithm."""
        name = f"conv{'_transpose' if transposed else ''}{weight.ndim - 2}d"
        extra = {"output_padding": output_padding} if transposed else {}
        options = {"stride": stride, "padding": padding, "dilation": dilation, **extra}
        return _called("nn.functional", name, self, weight, bias, **options)

    return convolve


def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    """A convolution whose padding is "same" or "valid"."""
    return _called(
        "nn.functional", f"conv{weight.ndim - 2}d", input, weight, bias, stride, padding, dilation, groups
    )  # fmt: skip


def _batch_norm_no_update(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    """Batch normalisation by running statistics, and the memory that a kernel of a device reserves."""
    results = _called("", "native_batch_norm", input, weight, bias, running_mean, running_var, False, momentum, eps)
    return *results, input.new_empty([0], dtype=uint8)


def _adaptive_avg_pool3d_backward(grad_output: Tensor, self: Tensor, *, grad_input: Tensor) -> Tensor:
    """The gradient of adaptive average pooling, stored."""
    pool = function_named("nn.functional", "adaptive_avg_pool3d")
    found = gradients_of(pool, [self, grad_output.shape[2:]], [0], grad_output)[0]
    return grad_input.resize_(found.shape).copy_(found)


# Attention ------------------------------------------------------------------------------------------------------------

_SOURCE, _PADDING = 0, 1
"""Masks of scores, and of keys: the numbers of PyTorch's kinds of mask."""


def _expanded_mask(mask: Tensor, scores: Tensor, mask_type: int | None) -> Tensor:
    if mask_type == _PADDING and mask.ndim == 2:
        mask = mask[:, None, None, :]
    return mask.expand(scores.shape)


def _masked_softmax(self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Any:
    """`softmax` without the elements where the mask is true, which become zero."""
    hidden = _expanded_mask(mask, self, mask_type).to(bool_)
    weights = self.masked_fill(hidden, -math.inf).softmax(-1 if dim is None else dim)
    return weights.masked_fill(hidden, 0.0)


def _masked_softmax_backward(grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None) -> Any:
    """The gradient of `_masked_softmax` from its result."""
    along = (grad_output * output).masked_fill(mask, 0.0).sum(-1 if dim is None else dim, keepdim=True)
    return (output * (grad_output - along)).masked_fill(mask, 0.0)


def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    """Queries, divided by the root of a head's size, keys and values of all heads."""
    batch, length, _ = qkv.shape
    parts = (qkv + qkv_bias).view(batch, length, 3, num_heads, -1).permute(2, 0, 3, 1, 4)
    query, key, value = (each.contiguous() for each in parts)
    return query * query.shape[-1] ** -0.5, key, value


def _native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Attention with its four linear layers, batches first, and its weights."""
    linear = function_named("nn.functional", "linear")
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    layers = zip((query, key, value), weights, biases, strict=True)
    q, k, v = (linear(each, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2) for each, w, b in layers)
    scores = q * q.shape[-1] ** -0.5 @ k.mT
    attended = scores.softmax(-1) if mask is None else _masked_softmax(scores, mask, -1, mask_type)
    result = linear((attended @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, attended.mean(1) if average_attn_weights else attended


def _transformer_encoder_layer_fwd(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor,
    norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
    ffn_bias_2: Tensor, mask: Tensor | None = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """A layer of a transformer's encoder, as in evaluation: no element is dropped."""
    from flambeau.nn.functional import gelu, layer_norm, linear, relu

    def norm(x: Any, weight: Tensor, bias: Tensor) -> Any:
        return layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x: Any) -> Any:
        parameters = qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        return _native_multi_head_attention(x, x, x, embed_dim, num_heads, *parameters)[0]

    def feed(x: Any) -> Any:
        inner = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(inner) if use_gelu else relu(inner), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm(src, norm_weight_1, norm_bias_1))
        return x + feed(norm(x, norm_weight_2, norm_bias_2))
    x = norm(src + attend(src), norm_weight_1, norm_bias_1)
    return norm(x + feed(x), norm_weight_2, norm_bias_2)


_BY_FORMULA, _FLASH = 0, 1


def _fused_sdp_choice(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> int:  # fmt: skip
    """The number of the kernel that PyTorch's attention on the CPU takes: 1 does not make the matrix of scores."""
    batched = query.ndim == key.ndim == value.ndim == 4 and query.shape[-1] == key.shape[-1] == value.shape[-1]
    return _FLASH if batched and not dropout_p and query.is_floating_point() else _BY_FORMULA


# Sequences of several lengths -----------------------------------------------------------------------------------------


def _pack_padded_sequence_backward(
    grad: Tensor, input_size: Sequence[int], batch_sizes: Tensor, batch_first: bool
) -> Tensor:
    """The gradient of a padded batch from that of its packed form."""
    sizes = list(input_size)
    if batch_first:
        sizes[:2] = sizes[1], sizes[0]
    result, first = grad.new_zeros(sizes), 0
    for step, count in enumerate(batch_sizes.tolist()):
        result[step, :count] = grad[first : first + count]
        first += count
    return result.transpose(0, 1) if batch_first else result


def _jagged_to_padded_dense_forward(
    values: Tensor, offsets: Sequence[Tensor], max_lengths: Sequence[int], padding_value: float = 0.0
) -> Tensor:
    """Rows of several lengths, one after the other, as a padded batch."""
    (offset,), (length,) = offsets, max_lengths
    starts = offset.tolist()
    result = values.new_full((len(starts) - 1, length, *values.shape[1:]), padding_value)
    for row, (first, end) in enumerate(itertools.pairwise(starts)):
        kept = min(end - first, length)
        result[row, :kept] = values[first : first + kept]
    return result


def _padded_dense_to_jagged_forward(dense: Tensor, offsets: Sequence[Tensor], total_L: int | None = None) -> Any:
    """The rows of a padded batch, one after the other, without the padding."""
    (offset,) = offsets
    starts = offset.tolist()
    result = dense.new_zeros((starts[-1] if total_L is None else total_L, *dense.shape[2:]))
    for row, (first, end) in enumerate(itertools.pairwise(starts)):
        kept = min(end - first, dense.shape[1])
        result[first : first + kept] = dense[row, :kept]
    return result


# Small ones -----------------------------------------------------------------------------------------------------------


def _rowwise_prune(weight: Tensor, mask: Tensor, compressed_indices_dtype: Any) -> tuple[Tensor, Tensor]:
    """The rows that a mask keeps, and the new number of each row, -1 for those that are gone."""
    numbers = mask.to(int64).cumsum(0) - 1
    return weight[mask], numbers.masked_fill(~mask, -1).to(compressed_indices_dtype)


def _extremes(name: str) -> Callable[..., None]:
    def store(self: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
        """Running extremes and their places, stored."""
        found = _called("", name, self, dim)
        values.copy_(found[0])
        indices.copy_(found[1])

    return store


def _compute_linear_combination(input: Tensor, coefficients: Tensor) -> Any:
    """Sums of slices of the input along its first dimension, each multiplied by a coefficient."""
    return _called("", "tensordot", coefficients, input, 1)


LAYERS: dict[str, Callable[..., Any]] = {
    "thnn_conv2d": _convolve(),
    "_slow_conv2d_forward": _convolve(),
    "slow_conv3d": _convolve(),
    "slow_conv3d_forward": _convolve(),
    "slow_conv_dilated2d": _convolve(),
    "slow_conv_dilated3d": _convolve(),
    "slow_conv_transpose2d": _convolve(transposed=True),
    "slow_conv_transpose3d": _convolve(transposed=True),
    "adaptive_avg_pool3d_backward": _adaptive_avg_pool3d_backward,
    "_cummax_helper": _extremes("cummax"),
    "_cummin_helper": _extremes("cummin"),
    "_pack_sequence": lambda output, batch_sizes, sorted_indices, unsorted_indices: (
        output, batch_sizes, sorted_indices, unsorted_indices,
    ),
    "_lu_with_info": lambda self, pivot=True, check_errors=True: tuple(
        _called("linalg", "lu_factor_ex", self, pivot=pivot, check_errors=check_errors)
    ),
    "_cholesky_solve_helper": lambda self, A, upper: _called("", "cholesky_solve", self, A, upper),
    "_no_grad_embedding_renorm_": lambda weight, input, max_norm, norm_type: _called(
        "", "embedding_renorm_", weight.detach(), input, max_norm, norm_type
    ),
    "_grid_sampler_2d_cpu_fallback": lambda input, grid, interpolation_mode, padding_mode, align_corners: _called(
        "", "grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners
    ),
    **{
        each.__name__: each
        for each in (
            _batch_norm_no_update, _compute_linear_combination, _convolution_mode,
            _fused_sdp_choice, _jagged_to_padded_dense_forward, _masked_softmax, _masked_softmax_backward,
            _native_multi_head_attention, _pack_padded_sequence_backward, _padded_dense_to_jagged_forward,
            _rowwise_prune, _transform_bias_rescale_qkv, _transformer_encoder_layer_fwd,
        )
    },
}  # fmt: skip
"""By the names of operators."""
