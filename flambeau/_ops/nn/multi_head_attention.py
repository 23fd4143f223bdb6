"""multi_head_attention_forward: projections, attention of several heads, and the way back."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._core.dtype import BOOL, FLOAT
from ..._core.modes import Ruled
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import RULED
from ..._dispatch.public.registry import public
from ..linalg.linear import linear
from ..linalg.matmul import bmm
from ..random.dropout import dropout
from ..shape.join import cat
from ..shape.split import _unbind
from ..shape.view import _contiguous_clone, _permute, _transpose, infer_size, reshaped
from .attention import scaled_dot_product_attention

_linear, _bmm = Ruled(RULED["nn.functional.linear"], linear), Ruled(RULED["bmm"], bmm)


def _require(condition: bool, message: str) -> None:
    """Complain as PyTorch does here: by an AssertionError."""
    if not condition:
        raise AssertionError(message)


def _check_ranks(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether the inputs have a batch dimension."""
    rank = query._array.ndim
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    batched: bool = rank == 3
    described = "For batched (3-D) `query`" if batched else "For unbatched (2-D) `query`"
    if not key._array.ndim == value._array.ndim == rank:
        raise AssertionError(
            f"{described}, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None:
        wanted = query.dim() - 1
        _require(
            key_padding_mask.dim() == wanted,
            f"{described}, expected `key_padding_mask` to be `None` or {wanted}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask.dim() in (2, 3),
            f"{described}, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead",
        )
        if not batched and attn_mask.dim() == 3:
            wanted_shape = (num_heads, query.shape[0], key.shape[0])
            _require(
                tuple(attn_mask.shape) == wanted_shape,
                f"Expected `attn_mask` shape to be {wanted_shape} but got {attn_mask.shape}",
            )
    return batched


def as_numbers(mask: Any, name: str, other: Any, like: Any, other_name: str = "attn_mask") -> Any:
    """A mask as what is added to the scores: 0 where a key is seen, -inf where not. A floating-point mask stays."""
    if other is not None and not isinstance(other, Tensor):
        raise RuntimeError(f"{other_name} must be None or torch.Tensor, not {type(other).__name__}")
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} must be Tensor, not {type(mask).__name__}")
    category = mask._kind.dtype.category
    _require(category in (BOOL, FLOAT), f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Give both the same dtype.",
            UserWarning,
            stacklevel=4,
        )
    if category == FLOAT:
        return mask
    return mask.new_zeros(mask.shape, dtype=like.dtype).masked_fill(mask, -math.inf)


def _with_column(mask: Any) -> Any:
    """`mask` for one more key, which everybody sees."""
    return None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _linear_of_steps(source: Any, weight: Any, bias: Any) -> Any:
    """`linear` of (length, batch, width); where sums over samples are a tree, samples have to come first."""
    if REPRODUCIBILITY.samples is None or source._array.ndim != 3:
        return _linear(source, weight, bias)
    samples: Any = _linear(_contiguous_clone(_transpose(source, 0, 1)), weight, bias)
    return _transpose(samples, 0, 1)


def _projected_together(source: Any, weight: Any, bias: Any, parts: int) -> tuple[Any, ...]:
    """Several projections of one tensor by one product."""
    together: Any = _linear_of_steps(source, weight, bias)
    apart = _permute(reshaped(together, (*source._array.shape[:2], parts, source._array.shape[2])), (2, 0, 1, 3))
    return _unbind(apart if apart._array.flags.c_contiguous else _contiguous_clone(apart), 0)


def _projected_by_head(source: Any, weight: Any, bias: Any, heads: int) -> tuple[Any, ...]:
    """Queries, keys and values of one tensor, each (batch, heads, length, width of a head)."""
    length, batch, width = source._array.shape
    together: Any = _linear_of_steps(source, weight, bias)
    apart = _permute(reshaped(together, (length, batch, 3, heads, width // heads)), (2, 0, 1, 3, 4))
    apart = apart if apart._array.flags.c_contiguous else _contiguous_clone(apart)
    return _unbind(_permute(apart, (0, 2, 3, 1, 4)), 0)


def _project(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The three projections, with the weights of all in one tensor."""
    if key._array.shape != value._array.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    _require(weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
    width = query._array.shape[-1]
    if key is value:
        if query is key:
            first, second, third = _projected_together(query, weight, bias, 3)
            return first, second, third
        own, shared = weight.split([width, 2 * width])
        own_bias, shared_bias = (None, None) if bias is None else bias.split([width, 2 * width])
        second, third = _projected_together(key, shared, shared_bias, 2)
        return _linear_of_steps(query, own, own_bias), second, third
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    first, second, third = map(_linear_of_steps, (query, key, value), weights, biases)
    return first, second, third


def _project_separately(
    query: Any, key: Any, value: Any, weights: tuple[Any, Any, Any], bias: Any
) -> tuple[Any, Any, Any]:
    """The three projections, with weights of their own: `key` and `value` may have other widths."""
    _require(
        key.shape[:2] == value.shape[:2],
        f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
    )
    width = query.shape[-1]
    names = ("query", "key", "value")
    for name, short, source, weight in zip(names, "qkv", (query, key, value), weights, strict=True):
        _require(weight is not None, f"use_separate_proj_weight is True but {short}_proj_weight is None")
        wanted = (width, source.shape[-1])
        _require(tuple(weight.shape) == wanted, f"expecting {name} weights shape of {wanted}, but got {weight.shape}")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    first, second, third = map(_linear_of_steps, (query, key, value), weights, biases)
    return first, second, third


def _static(name: str, given: Any, heads: int, width: int) -> Any:
    for dim, wanted in ((0, heads), (2, width)):
        _require(given.shape[dim] == wanted, f"expecting {name}.size({dim}) of {wanted}, but got {given.shape[dim]}")
    return given


def _check_attn_mask(attn_mask: Any, heads: int, targets: int, sources: int) -> Any:
    """`attn_mask` in three dimensions."""
    if attn_mask is None:
        return None
    wanted = (targets, sources) if attn_mask.dim() == 2 else (heads, targets, sources)
    if tuple(attn_mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {wanted}."
        )
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def _attend_with_weights(q: Any, k: Any, v: Any, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    scaled = q * math.sqrt(1.0 / q._array.shape[-1])
    turned = _transpose(k, 1, 2)
    scores = _bmm(scaled, turned) if mask is None else mask.baddbmm(scaled, turned)
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return _bmm(weights, v), weights


def _prepared_masks(q: Any, hidden: Any, mask: Any, need_weights: bool, is_causal: bool) -> tuple[Any, Any, bool]:
    """The padding mask and the attention mask as numbers, and whether the hint replaces the latter."""
    hidden = as_numbers(hidden, "key_padding_mask", mask, q)
    if is_causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint: give the causal mask as well.")
    if is_causal and hidden is None and not need_weights:
        return None, None, True
    return hidden, as_numbers(mask, "attn_mask", None, q), False


def _with_bias_keys(k: Any, v: Any, bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> tuple[Any, Any]:
    """A learned key and value after those given."""
    _require(bias_v is not None, "bias_k is set but bias_v is None")
    _require(bias_k is not None, "bias_v is set but bias_k is None")
    _require(static_k is None, "bias cannot be added to static key.")
    _require(static_v is None, "bias cannot be added to static value.")
    batch = k.shape[1]
    return cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])


def _merged(mask: Any, hidden: Any, batch: int, num_heads: int, sources: int) -> Any:
    """Both masks in one, for all heads of all samples."""
    if hidden is None:
        return mask
    for dim, wanted in enumerate((batch, sources)):
        _require(
            hidden.shape[dim] == wanted,
            f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {hidden.shape[dim]}",
        )
    spread = hidden.reshape(batch, 1, 1, sources).expand(-1, num_heads, -1, -1)
    spread = spread.reshape(batch * num_heads, 1, sources)
    return spread if mask is None else mask + spread


def _by_head(projected: Any, heads: int, width: int) -> Any:
    """(length, batch, width of all heads) as (heads of all samples, length, width)."""
    size = infer_size((projected._array.shape[0], heads, width), projected._array.size)
    return _transpose(reshaped(projected, size), 0, 1)


def _attend(q: Any, k: Any, v: Any, mask: Any, dropout_p: float, is_causal: bool) -> Any:
    """Attention without its weights, of (batch, heads, length, width), in one op; (length * batch, width of all)."""
    batch, heads, targets, width = q._array.shape
    if mask is not None:
        by_sample = (1, 1) if mask._array.shape[0] == 1 else (batch, heads)
        mask = reshaped(mask, (*by_sample, *mask._array.shape[1:]))
    attended = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return reshaped(_permute(attended, (2, 0, 1, 3)), (targets * batch, heads * width))


@public("nn.functional.multi_head_attention_forward", function=False, method=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,  # these three are tensors where they are used, and not looked at elsewhere
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of `num_heads` heads, and the weights with which they looked if `need_weights`.

    The inputs are (length, batch, width), or (length, width). Masks of dtype bool are True where a key is hidden;
    others are added to the scores. `is_causal` is a hint that `attn_mask` is the causal mask.
    """
    q = query
    k = key
    v = value
    hidden = key_padding_mask
    mask = attn_mask
    batched = _check_ranks(q, k, v, hidden, mask, num_heads)
    if not batched:
        same_key, same_value = k is q, v is k
        q = q.unsqueeze(1)
        k = q if same_key else k.unsqueeze(1)
        v = k if same_value else v.unsqueeze(1)
        hidden = None if hidden is None else hidden.unsqueeze(0)
    targets, batch, width = q._array.shape
    heads, head_width = batch * num_heads, width // num_heads
    hidden, mask, is_causal = _prepared_masks(q, hidden, mask, need_weights, is_causal)
    _require(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    _require(head_width * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    chance = dropout_p if training else 0.0
    added = add_zero_attn or not bias_k is bias_v is static_k is static_v is None
    weights: Any = None
    if q is k is v and in_proj_weight is not None and not (use_separate_proj_weight or need_weights or added):
        mask = _merged(_check_attn_mask(mask, heads, targets, targets), hidden, batch, num_heads, targets)
        q, k, v = _projected_by_head(q, in_proj_weight, in_proj_bias, num_heads)
        attended = _attend(q, k, v, mask, chance, is_causal)
    else:
        if use_separate_proj_weight:
            projected = _project_separately(q, k, v, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
        else:
            projected = _project(q, k, v, in_proj_weight, in_proj_bias)
        mask = _check_attn_mask(mask, heads, targets, k._array.shape[0])
        q, k, v = projected
        if bias_k is not None or bias_v is not None:
            k, v = _with_bias_keys(k, v, bias_k, bias_v, static_k, static_v)
            mask, hidden = _with_column(mask), _with_column(hidden)
        q, k, v = [_by_head(each, heads, head_width) for each in (q, k, v)]
        k = k if static_k is None else _static("static_k", static_k, heads, head_width)
        v = v if static_v is None else _static("static_v", static_v, heads, head_width)
        if add_zero_attn:
            k, v = (cat([each, each.new_zeros((heads, 1, head_width))], 1) for each in (k, v))
            mask, hidden = _with_column(mask), _with_column(hidden)
        mask = _merged(mask, hidden, batch, num_heads, k._array.shape[1])
        if need_weights:
            attended, weights = _attend_with_weights(q, k, v, mask, chance)
            attended = reshaped(_transpose(attended, 0, 1), (targets * batch, width))
            weights = reshaped(weights, (batch, num_heads, targets, k._array.shape[1]))
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            q, k, v = [reshaped(each, (batch, num_heads, *each._array.shape[1:])) for each in (q, k, v)]
            attended = _attend(q, k, v, mask, chance, is_causal)
    if REPRODUCIBILITY.samples is not None:
        attended = reshaped(attended, (targets, batch, attended._array.shape[-1]))
    result: Any = _linear_of_steps(attended, out_proj_weight, out_proj_bias)
    result = reshaped(result, (targets, batch, result._array.shape[-1]))
    if batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)
