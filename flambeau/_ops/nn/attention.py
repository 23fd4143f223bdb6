"""Scaled dot product attention."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._backends import arrays as array_functions
from ..._core.backend import backend_of_array, is_array
from ..._core.device import CPU
from ..._core.dtype import C_NAMES, FLOAT, bool_, float32, float64
from ..._core.geometry.layout import element_strides, empty_array, preserved_strides
from ..._core.kind import kind_of
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import LOWER
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.axes import Along
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.composite import derivative
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.gradients.array_derivatives import TAKEN
from ..._dispatch.gradients.needed import needs_gradient
from ..._dispatch.public.protocol import CASTING
from ..._dispatch.public.registry import public
from ..linalg.merged_nodes import runs_as_one
from ..random.dropout import dropout, kept_factors, mask_of_dropout
from ..reduce.moments import widened, widened_tensor
from ..reduce.reductions import reduced
from ..reduce.softmax import _prepared, _softmax, _softmax_backward
from ..shape.view import _expand, _unsafe_view, _unsqueeze, reshaped, wrap_dim

_LOWEST = -math.inf

ENABLED = {"MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE"}
"""The ways of computing attention that `nn.attention.sdpa_kernel` leaves."""


@primitive(
    "SafeSoftmaxBackward0", axes=Along("dim"), self=lambda grad, result, dim: _softmax_backward(grad, result, dim)
)
@in_single
def _safe_softmax_kernel(self: Array, dim: int) -> Array:
    result = _softmax.kernel(self, dim)
    if self.ndim and self.shape[dim]:
        hidden = np.maximum.reduce(self, axis=dim, keepdims=True) == _LOWEST
        result = np.where(hidden, result.dtype.type(0), result)
    return result


@public("ops.aten._safe_softmax", method=False)
def _safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`softmax`, but zeros where all elements along `dim` are -inf."""
    prepared = _prepared("softmax", input, dtype)
    return _safe_softmax_kernel(prepared, wrap_dim(dim, input._array.ndim))


# ----- attention in one op -----------------------------------------------------------------------------------------


def _causal(scores: Array) -> Array:
    """Where a query may look at a key: not at later ones."""
    return np.tri(*scores.shape[-2:], dtype=np.bool_, like=scores)


def _scores(query: Any, key: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
    scores = query @ key.swapaxes(-2, -1) * scale
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = scores + _causal_mask(scores)
    return scores


def _causal_mask(scores: Any) -> Any:
    rows, columns = scores.shape[-2:]
    if is_array(scores):
        return np.where(_causal(scores), scores.dtype.type(0), scores.dtype.type(_LOWEST))
    return scores.new_full((rows, columns), _LOWEST).triu(1)


def _factor(scale: float | None, width: int) -> float:
    return (1 / math.sqrt(width) if width else 1.0) if scale is None else scale


def _weights(scores: Any, logsumexp: Any) -> Any:
    """Exponentials divided by their sum, whose logarithm is given.

    Rows without any visible key have the sum 0: their weights are 0, not exp(-inf - -inf).
    """
    if is_array(scores):
        return np.exp(scores - np.where(logsumexp == _LOWEST, logsumexp.dtype.type(0), logsumexp)[..., None])
    return (scores - logsumexp.masked_fill(logsumexp == _LOWEST, 0.0).unsqueeze(-1)).exp()


@derivative("attention_backward")
def _attention_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
    output: Any,
    logsumexp: Any,
) -> list[Any]:
    return _gradients(grads, needed, (query, key, value, output), None, is_causal, attn_mask, scale, logsumexp)


def _gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    saved: tuple[Any, Any, Any, Any],
    factors: Any,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
    logsumexp: Any,
) -> list[Any]:
    """The gradients of query, key and value; `factors`: what dropout multiplied the weights by."""
    grad, of_sums = (widened_tensor(each) for each in grads)
    q, k, v, out, mask = (widened_tensor(each) for each in (*saved, attn_mask))
    own = k.shape
    if q.shape[1] != own[1]:
        k, v = (_each_repeated(each, q.shape[1] // own[1]) for each in (k, v))
    factor = _factor(scale, q.shape[-1])
    weights = _weights(_scores(q, k, mask, is_causal, factor), logsumexp)
    of_scores = None
    if grad is not None:
        of_seen = grad @ v.swapaxes(-2, -1)
        if factors is not None:
            of_seen = of_seen * factors
        of_scores = weights * (of_seen - (grad * out).sum(axis=-1, keepdims=True))
    if of_sums is not None:
        through_sums = weights * of_sums.unsqueeze(-1)
        of_scores = through_sums if of_scores is None else of_scores + through_sums
    of_query = of_key = of_value = None
    if of_scores is not None:
        of_query = of_scores @ k * factor if needed[0] else None
        of_key = of_scores.swapaxes(-2, -1) @ q * factor if needed[1] else None
    if grad is not None and needed[2]:
        of_value = (weights if factors is None else weights * factors).swapaxes(-2, -1) @ grad
    if q.shape[1] != own[1]:
        of_key, of_value = (None if each is None else _summed_over(each, own) for each in (of_key, of_value))
    return [of_query, of_key, of_value]


def _each_repeated(heads: Any, times: int) -> Any:
    return np.repeat(heads, times, axis=1) if is_array(heads) else heads.repeat_interleave(times, 1)


def _summed_over(heads: Any, shape: tuple[int, ...]) -> Any:
    """The sums over the heads that share one of `shape`."""
    batch, own, length, width = shape
    return heads.reshape((batch, own, heads.shape[1] // own, length, width)).sum(axis=2)


def _attention_shapes(query: Array, *rest: Any) -> tuple[Array, Array]:
    sums = np.empty_like(query, shape=query.shape[:3], dtype=np.float32 if query.dtype.itemsize == 2 else query.dtype)
    return np.empty_like(query, order="C"), sums


@several(
    "ScaledDotProductFlashAttentionForCpuBackward0",
    joint=_attention_gradients,
    shape=_attention_shapes,
    results=("output", "logsumexp"),
    differentiable=("query", "key", "value"),
)
def _attention(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> tuple[Array, Array]:
    return _attended(query, key, value, None, is_causal, attn_mask, scale)


def _attended(
    query: Array, key: Array, value: Array, factors: Any, is_causal: bool, attn_mask: Any, scale: float | None
) -> tuple[Array, Array]:
    """The result, and the logarithms of the sums of exponentials; `factors`: what dropout multiplies weights by."""
    q, k, v = (widened(each) for each in (query, key, value))
    if (times := q.shape[1] // max(k.shape[1], 1)) > 1:
        k, v = np.repeat(k, times, axis=1), np.repeat(v, times, axis=1)
    weights = array_functions.matmul(q * q.dtype.type(_factor(scale, q.shape[-1])), k.swapaxes(-2, -1))
    if attn_mask is not None:
        weights += widened(attn_mask)
    if is_causal:
        np.copyto(weights, _LOWEST, where=~_causal(weights))
    highest = np.maximum.reduce(weights, axis=-1, keepdims=True)
    highest = np.where(highest == _LOWEST, highest.dtype.type(0), highest)
    weights -= highest
    np.exp(weights, weights)
    sums = reduced(np.add, weights, (weights.ndim - 1,), True)
    if factors is not None:
        weights *= factors
    # The weights of half-precision inputs are rounded as these, as in PyTorch.
    result = array_functions.matmul(
        weights if weights.dtype == value.dtype else widened(weights.astype(value.dtype)), v
    )
    result /= np.where(sums == 0, sums.dtype.type(1), sums)
    output = empty_array(
        query.shape, preserved_strides(query.shape, element_strides(query)), query.dtype, backend_of_array(query)
    )
    output[...] = result
    return output, (highest + np.log(sums))[..., 0]


# ----- the same with dropout, where a device has a kernel for it ------------------------------------------------------


@derivative("dropped_attention_backward")
def _dropped_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    query: Any,
    key: Any,
    value: Any,
    kept: Any,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
    output: Any,
    logsumexp: Any,
) -> list[Any]:
    saved, factors = (query, key, value, output), kept * (1 / (1 - dropout_p))
    return _gradients(grads, needed, saved, factors, is_causal, attn_mask, scale, logsumexp)


@several(
    "ScaledDotProductFlashAttentionBackward0",
    joint=_dropped_gradients,
    shape=_attention_shapes,
    results=("output", "logsumexp"),
    differentiable=("query", "key", "value"),
)
def _dropped_attention(
    query: Array,
    key: Array,
    value: Array,
    kept: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> tuple[Array, Array]:
    """Attention of which only the weights in `kept` count."""
    return _attended(query, key, value, kept * np.float32(1 / (1 - dropout_p)), is_causal, attn_mask, scale)


def _may_drop(query: Tensor, key: Tensor, dropout_p: float) -> bool:
    """Whether the weights of calls that fit one op are dropped inside it."""
    return bool(
        0 < dropout_p < 1
        and THREAD.modes.run_as_plain()
        and query._kind.backend.costs_per_call
        and not query._kind.indirect
        and array_functions.runs_dropped_attention(query._array, key._array)
    )


def _fits_one_op(query: Tensor, key: Any, value: Any, attn_mask: Any, shared: bool = False) -> bool:
    """Whether PyTorch, too, computes it in one op if nothing is dropped: four dimensions, equal sizes.

    `shared`: several heads of `query` may have one of `key` and `value`.
    """
    shapes = []
    for each in (query._array, key._array, value._array):
        shape = each.shape
        if len(shape) != 4 or 0 in shape or (shape[3] > 1 and each.strides[3] != each.itemsize):
            return False
        shapes.append(shape)
    if shapes[1] != shapes[2] or shapes[0][0] != shapes[1][0] or shapes[0][3] != shapes[1][3]:
        return False
    if shapes[0][1] != shapes[1][1] and not (shared and shapes[0][1] % shapes[1][1] == 0):
        return False
    if query._kind.dtype.category != FLOAT:
        return False
    if attn_mask is None:
        return True
    wanted = (*shapes[0][:3], shapes[1][2])
    given = attn_mask._array.shape
    return (
        len(given) in (2, 4)
        and all(size in (1, full) for size, full in zip(given[::-1], wanted[::-1], strict=False))
        and not needs_gradient(attn_mask)
    )


# ----- attention of few elements, whose weights are kept -----------------------------------------------------------


def _roots(scale: float | None, width: int) -> tuple[float, float]:
    """By what queries and keys are scaled: by the root of the factor on either side, so that neither overflows."""
    factor = _factor(scale, width)
    root = math.sqrt(abs(factor))
    return math.copysign(root, factor), root


@derivative("small_attention_backward")
def _small_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    query: Any,
    key: Any,
    value: Any,
    factors: Any,
    scale: float | None,
    weights: Any,
) -> list[Any]:
    grad, of_weights = grads
    of_query = of_key = of_value = None
    if grad is not None:
        seen = weights if factors is None else weights * factors
        of_value = seen.swapaxes(-2, -1) @ grad if needed[2] else None
        of_seen = grad @ value.swapaxes(-2, -1)
        through = of_seen if factors is None else of_seen * factors
        of_weights = through if of_weights is None else of_weights + through
    if of_weights is not None and (needed[0] or needed[1]):
        on_query, on_key = _roots(scale, query.shape[-1])
        of_scores = (of_weights - (of_weights * weights).sum(axis=-1, keepdims=True)) * weights
        if needed[0]:
            of_query = of_scores @ (key * on_key) * on_query
        if needed[1]:
            of_key = ((query * on_query).swapaxes(-2, -1) @ of_scores).swapaxes(-2, -1) * on_key
    return [of_query, of_key, of_value]


@functools.lru_cache(maxsize=32)
def _later_keys(rows: int, columns: int) -> Any:
    """Where a key comes after a query."""
    return ~np.tri(rows, columns, dtype=np.bool_)


@several(
    "ScaledDotProductAttentionMathBackward0",
    joint=_small_gradients,
    results=("output", "weights"),
    differentiable=("query", "key", "value"),
)
def _small_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    factors: Array | None,
    is_causal: bool,
    scale: float | None,
) -> tuple[Array, Array]:
    """Attention, and its weights before they are multiplied by the `factors` of dropout: the steps of `_in_parts`."""
    on_query, on_key = _roots(scale, query.shape[-1])
    scores = array_functions.matmul(query * on_query, key.swapaxes(-2, -1) * on_key)
    if is_causal:
        np.copyto(scores, _LOWEST, where=_later_keys(*scores.shape[-2:]))
    if attn_mask is not None:
        scores += attn_mask
    weights = array_functions.safe_softmax(scores, scores.ndim - 1)
    if weights is None:
        weights = _safe_softmax_kernel.kernel(scores, -1)
    return array_functions.matmul(weights if factors is None else weights * factors, value), weights


def _is_small(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any) -> bool:
    """Whether the calls take longer than what they compute, and one op can take the place of a dozen.

    Interpreters that do something else with ops see the dozen, which each of them knows.
    """
    modes, kind = THREAD.modes, query._kind
    if not modes.run_as_plain() or CASTING or kind not in _SINGLE_AND_DOUBLE or REPRODUCIBILITY.samples is not None:
        return False
    for each in (query, key, value, attn_mask):
        if each is not None and (type(each) not in PLAIN_TYPES or each._kind is not kind):
            return False
    first, second, third = (each._array.shape for each in (query, key, value))
    batch, scores = first[:-2], (*first[:-1], second[-2])
    if not (batch and batch == second[:-2] == third[:-2] and first[-1] == second[-1] and second[-2] == third[-2]):
        return False
    if not 0 < math.prod(scores) < _MANY_SCORES or 0 in (first[-1], third[-1]):
        return False
    if attn_mask is None:
        return True
    given = attn_mask._array.shape
    fits = len(given) <= len(scores) and all(
        size in (1, full) for size, full in zip(given[::-1], scores[::-1], strict=False)
    )
    return fits and not needs_gradient(attn_mask)


_MANY_SCORES = 1 << 16
"""From so many on, threads that share the elements of each part are worth more than fewer calls."""
_SINGLE_AND_DOUBLE = (kind_of(float32, CPU), kind_of(float64, CPU))


# ----- attention in parts ------------------------------------------------------------------------------------------


def _in_parts(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None
) -> Tensor:
    if 0 <= dropout_p < 1 and _is_small(query, key, value, attn_mask):
        factors = None
        if dropout_p:
            shape = (*query._array.shape[:-1], key._array.shape[-2])
            factors = kept_factors(query, shape, dropout_p)
        output = _small_attention(query, key, value, attn_mask, factors, is_causal, scale)[0]
        return _unsafe_view(output, output._array.shape)  # the step with which a product of batches ends
    half = query.dtype if query.dtype.itemsize == 2 else None
    if half is not None:
        query, key, value, attn_mask = (widened_tensor(each) for each in (query, key, value, attn_mask))
    on_query, on_key = _roots(scale, query._array.shape[-1])
    scores = (query * on_query) @ (key.transpose(-2, -1) * on_key)
    if is_causal:
        scores = scores + _causal_mask(scores)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = _safe_softmax(scores, -1)
    if dropout_p > 0:
        if dropout_p > 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
        weights = dropout(weights, dropout_p)
    result = weights @ value
    return result if half is None else result.to(half)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    kinds = [each._kind for each in (query, key, value)]
    if not kinds[0].dtype is kinds[1].dtype is kinds[2].dtype:
        names = [C_NAMES.get(each.dtype.name, each.dtype.name) for each in kinds]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: "
            f"{names[1]} and value.dtype: {names[2]} instead."
        )
    dims = [each._array.ndim for each in (query, key, value)]
    if min(dims) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {dims[0]} key.dim: "
            f"{dims[1]} and value.dim: {dims[2]} instead."
        )
    if attn_mask is not None:
        kind = attn_mask._kind.dtype
        if kind is not bool_ and kind is not kinds[0].dtype and kind is not float32:
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{C_NAMES.get(kind.name, kind.name)} and  query.dtype: "
                f"{C_NAMES.get(kinds[0].dtype.name, kinds[0].dtype.name)} instead."
            )


def _hiding(seen: Array, array_type: Any) -> Array:
    return np.where(seen, array_type.type(0), array_type.type(_LOWEST))


_addend = BackendOp("attention_addend", elsewhere=_hiding)


def _added(mask: Tensor, query: Tensor) -> Tensor:
    """What a mask of the keys that queries see adds to the scores: nothing, or -inf."""
    kind = query._kind
    found: Tensor | None = None if kind.indirect else _addend(mask, kind.dtype.numpy)
    if found is None:
        zeros = mask.new_zeros(mask._array.shape, dtype=kind.dtype)
        found = zeros.masked_fill(mask.logical_not(), _LOWEST)
    return found


def _shared_heads(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Each head of `key` and `value` repeated for the heads of `query` that share it."""
    heads, key_heads, value_heads = (each._array.shape[-3] for each in (query, key, value))
    if heads == key_heads == value_heads:
        return key, value
    if heads % key_heads or heads % value_heads:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query: they are {key_heads}, "
            f"{value_heads} and {heads}"
        )
    return _repeated(key, heads), _repeated(value, heads)


def _repeated(tensor: Any, heads: int) -> Any:
    """Each head as often as makes so many of them, one copy after the other."""
    *batch, own, length, width = tensor._array.shape
    spread = _expand(_unsqueeze(tensor, len(batch) + 1), (*batch, own, heads // own, length, width))
    return reshaped(spread, (*batch, heads, length, width))


def _shares_in_gradients(query: Tensor) -> bool:
    """Whether one node stands for attention with shared heads, as PyTorch's does: the CPU's derivative takes them."""
    kind = query._kind
    return kind.is_cpu and TAKEN[kind] and runs_as_one(kind) and REPRODUCIBILITY.total is None


@public("nn.functional.scaled_dot_product_attention", function=False, method=False, autocast=LOWER)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + attn_mask) @ value`.

    A boolean `attn_mask` says which keys a query sees; `is_causal`: none that come later. `scale` is by default the
    inverse root of the last dimension. `enable_gqa`: several heads of `query` share one of `key` and `value`.
    """
    _check(query, key, value, attn_mask)
    mask = attn_mask
    if mask is not None and mask._kind.dtype is bool_:
        mask = _added(mask, query)
    shares = enable_gqa and THREAD.modes.run_as_plain()
    if shares and needs_gradient(query, key, value):
        shares = _shares_in_gradients(query) and _fits_one_op(query, key, value, mask, True)
    if enable_gqa and not shares:
        key, value = _shared_heads(query, key, value)
    if "FLASH_ATTENTION" in ENABLED and _fits_one_op(query, key, value, mask, shares):
        if not dropout_p:
            return _attention(query, key, value, 0.0, is_causal, mask, scale)[0]
        if _may_drop(query, key, dropout_p):
            scores = (*query._array.shape[:3], key._array.shape[2])
            kept = mask_of_dropout(query, scores, dropout_p)
            return _dropped_attention(query, key, value, kept, dropout_p, is_causal, mask, scale)[0]
    if shares:
        key, value = _shared_heads(query, key, value)
    if is_causal and mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True, except for inputs "
            "of four dimensions without dropout"
        )
    if "MATH" not in ENABLED:
        raise RuntimeError(
            "No available kernel. Aborting execution. FLASH_ATTENTION is for four dimensions without dropout."
            if "FLASH_ATTENTION" in ENABLED
            else "No viable backend for scaled_dot_product_attention was found: sdpa_kernel() left neither MATH nor "
            "FLASH_ATTENTION."
        )
    return _in_parts(query, key, value, mask, dropout_p, is_causal, scale)
