"""`torch.onnx.ops`: operators of ONNX's as functions, and nodes of any operator in an exported graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor

from .._dispatch.dispatch import Array, several
from ._converters import Result, converter
from ._element_types import torch_type
from ._graph import Graph, Value

__all__ = ["aten_decompositions", "attention", "rotary_embedding", "symbolic", "symbolic_multi_out"]


def aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions that an exported program needs: none, for ops are converted as they are."""
    return {}


def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """ONNX's `Attention`: the result, all keys and values, and the scores at the stage that the mode names."""
    options = (is_causal, kv_num_heads, q_num_heads, qk_matmul_output_mode, scale, softcap, softmax_precision)
    return attend(Q, K, V, attn_mask, past_key, past_value, *options, cap_first=False)


def attend(
    query: Any, key: Any, value: Any, mask: Any, past_key: Any, past_value: Any, is_causal: bool, kv_num_heads: int,
    q_num_heads: int, mode: int, scale: float | None, softcap: float, softmax_precision: int | None, *, cap_first: bool,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Attention; scores are capped after the mask, as in PyTorch, or before it, as the format has it now."""
    flat = query.dim() == 3
    if flat:
        query, key, value = (
            each.reshape(*each.shape[:2], count, -1).transpose(1, 2)
            for each, count in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
        )
    if past_key is not None and past_value is not None:
        key, value = flambeau.cat([past_key, key], 2), flambeau.cat([past_value, value], 2)
    all_keys, all_values = key, value
    if query.shape[1] != key.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(times, 1) for each in (key, value))
    root = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    stages = [flambeau.matmul(query * root, key.transpose(-2, -1) * root)]
    for step in ("cap", "mask") if cap_first else ("mask", "cap"):
        scores = stages[-1]
        if step == "mask":
            stages.append(_masked(scores, mask, is_causal, past_key is not None))
        else:
            stages.append(softcap * flambeau.tanh(scores / softcap) if softcap else scores)
    wide = stages[-1] if softmax_precision is None else stages[-1].to(torch_type(softmax_precision))
    weights = flambeau.softmax(wide, -1)
    if cap_first:  # there a row that sees nothing is zero
        weights = flambeau.where(flambeau.isnan(weights), 0.0, weights)
    stages.append(weights.to(value.dtype))
    made = flambeau.matmul(stages[-1], value)
    return made.transpose(1, 2).flatten(2) if flat else made, all_keys, all_values, stages[mode]


def _masked(scores: Any, mask: Any, is_causal: bool, has_past: bool) -> Any:
    if is_causal:
        rows, columns = scores.shape[-2:]
        hidden = flambeau.ones((rows, columns), dtype=flambeau.bool).triu(1 + columns - rows if has_past else 1)
        scores = scores.masked_fill(hidden, float("-inf"))
    if mask is None:
        return scores
    return scores.masked_fill(~mask, float("-inf")) if mask.dtype is flambeau.bool else scores + mask


def rotary_embedding(
    X: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """ONNX's `RotaryEmbedding`: pairs of features are turned by the angles of their positions."""
    flat = X.dim() == 3
    value: Any = X.reshape(*X.shape[:2], num_heads, -1).transpose(1, 2) if flat else X
    width = rotary_embedding_dim or value.shape[-1]
    turned, rest = value[..., :width], value[..., width:]
    cos: Any = cos_cache if position_ids is None else cos_cache[position_ids]
    sin: Any = sin_cache if position_ids is None else sin_cache[position_ids]
    cos, sin = (each[..., : width // 2].unsqueeze(1) for each in (cos, sin))
    if interleaved:
        left, right = turned[..., 0::2], turned[..., 1::2]
        made = flambeau.stack([left * cos - right * sin, left * sin + right * cos], -1).flatten(-2)
    else:
        left, right = turned.chunk(2, -1)
        made = flambeau.cat([left * cos - right * sin, left * sin + right * cos], -1)
    made = flambeau.cat([made, rest], -1)
    return made.transpose(1, 2).flatten(2) if flat else made


# ----- nodes of any operator ------------------------------------------------------------------------------------------


def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtype: Any,
    shape: Sequence[int],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Tensor:
    """A node of the operator `domain::Name` in an exported graph; run, it gives zeros of the shape that is said."""
    made = symbolic_multi_out(domain_op, inputs, attrs, dtypes=[dtype], shapes=[shape], version=version)
    return made[0]


def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtypes: Sequence[Any],
    shapes: Sequence[Sequence[int]],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:
    """A call of an ONNX operator with several results."""
    if len(dtypes) != len(shapes):
        raise ValueError(f"Number of output dtypes ({len(dtypes)}) must match number of shapes ({len(shapes)})")
    given = [each for each in inputs if each is not None]
    if not given:
        raise ValueError("a symbolic node needs at least one tensor as its input")
    types = tuple([torch_type(each) if isinstance(each, int) else each for each in dtypes])
    present = tuple([each is not None for each in inputs])
    sizes = tuple([tuple(each) for each in shapes])
    return _node(given, domain_op, present, dict(attrs or {}), types, sizes, version)


@several(None, op_name="onnx_node")
def _node(
    tensors: list[Array], name: str, present: Any, attrs: Any, types: Any, sizes: Any, version: int | None
) -> tuple[Array, ...]:
    return tuple([np.zeros(size, kind.numpy, like=tensors[0]) for kind, size in zip(types, sizes, strict=True)])


@converter("onnx_node")
def _convert_node(
    g: Graph, call: Result, tensors: list[Value], name: str, present: Any, attrs: Any, types: Any, sizes: Any,
    version: int | None,
) -> list[Value]:  # fmt: skip
    domain, _, kind = name.rpartition("::")
    if domain:
        g.domains[domain] = version or 1
    left = iter(tensors)
    operands = [next(left) if each else None for each in present]
    return g.ops(kind, len(types), *operands, domain=domain, **attrs)
