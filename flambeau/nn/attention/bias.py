"""Causal masks for `scaled_dot_product_attention`, where queries and keys differ in number."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from ..._core.dtype import bool_
from ..._core.tensor import Tensor
from ..._dispatch.public.overrides import DisableTorchFunctionSubclass
from ..._ops.create.constants import ones
from ..._ops.nn.attention import scaled_dot_product_attention
from ..._ops.tensor.legacy import make_subclass
from .. import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the mask the diagonal starts from."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def _mask(variant: CausalVariant, queries: int, keys: int, device: Any = None) -> Tensor:
    """True where a query sees a key."""
    diagonal = keys - queries if variant is CausalVariant.LOWER_RIGHT else 0
    return ones(queries, keys, dtype=bool_, device=device).tril(diagonal)


class CausalBias(Tensor):
    """A mask that hides later keys, and knows that it does: attention need not look at it."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        bias: CausalBias = make_subclass(cls, _mask(variant, seq_len_q, seq_len_kv), False)
        bias.variant = variant
        bias.seq_len_q = seq_len_q
        bias.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                UserWarning,
                stacklevel=3,
            )
        return bias

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return _mask(self.variant, self.seq_len_q, self.seq_len_kv, device)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return _attend(*args, **(kwargs or {}))
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # mypy takes the options of special methods for positional
        return self._materialize().__repr__(**options)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: CausalBias,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    square = attn_mask.seq_len_q == attn_mask.seq_len_kv
    causal = square or attn_mask.variant is CausalVariant.UPPER_LEFT
    mask = None if causal else attn_mask._materialize(query.device)
    return scaled_dot_product_attention(query, key, value, mask, dropout_p, causal, scale=scale, enable_gqa=enable_gqa)


def _two(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors: give the numbers of queries and of keys")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """A mask for `size` queries and keys: query i sees the keys up to i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """A mask for `size` queries and keys: the last query sees all keys, the one before it all but one, and so on."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))
