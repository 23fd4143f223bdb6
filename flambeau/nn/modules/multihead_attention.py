"""`MultiheadAttention`. Its home for programs and pickles is `activation.py`, as in PyTorch."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from ..._ops.nn.multi_head_attention import as_numbers
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Attention of several heads, each on its part of the projected queries, keys and values.

    `head_i = softmax(Q_i @ K_i.T / sqrt(embed_dim / num_heads)) @ V_i`; the heads are joined and projected once more.
    Calls take `(query, key, value)` and, by name, `key_padding_mask`, `need_weights`, `attn_mask`,
    `average_attn_weights` and `is_causal`. `True` in a Boolean mask forbids attention; a float mask is added to the
    scores.

    Args:
        embed_dim (int): how many features the queries and the output have.
        num_heads (int): how many heads share the features; it divides `embed_dim`.
        dropout (float): the probability with which an attention weight becomes zero in training. Default: `0.0`.
        bias (bool): whether the projections have biases. Default: `True`.
        add_bias_kv (bool): whether a learned key and value are added to every sequence. Default: `False`.
        add_zero_attn (bool): whether a key and a value of zeros are added to every sequence. Default: `False`.
        kdim (int, optional): how many features the keys have; None means `embed_dim`.
        vdim (int, optional): how many features the values have; None means `embed_dim`.
        batch_first (bool): whether the batch is the first dimension of sequences; otherwise it is the second. Default:
            `False`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        query: (L, N, embed_dim), or (N, L, embed_dim) with `batch_first`, or (L, embed_dim)
        key, value: (S, N, kdim) and (S, N, vdim), or with the batch first, or without it
        output: a pair: the attended values, of the query's shape, and the weights, (N, L, S), or None with
            `need_weights=False`

    Raises:
        ValueError: `embed_dim` or `num_heads` is not positive.
        AssertionError: `num_heads` does not divide `embed_dim`.

    Example:
        >>> attention = flambeau.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> sequence = flambeau.ones(3, 5, 8)
        >>> output, weights = attention(sequence, sequence, sequence)
        >>> output.shape, weights.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    __constants__: ClassVar = ["batch_first"]
    embed_dim: int
    kdim: int
    vdim: int
    num_heads: int
    dropout: float
    batch_first: bool
    head_dim: int
    add_zero_attn: bool
    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(f"embed_dim must be divisible by num_heads, but got {embed_dim} and {num_heads}")

        def place(name: str, *shape: int) -> None:
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if shape else None)

        if self._qkv_same_embed_dim:
            place("in_proj_weight", 3 * embed_dim, embed_dim)
            for name in "qkv":
                place(f"{name}_proj_weight")
        else:
            for name, width in zip("qkv", (embed_dim, self.kdim, self.vdim), strict=True):
                place(f"{name}_proj_weight", embed_dim, width)
            place("in_proj_weight")
        place("in_proj_bias", *([3 * embed_dim] if bias else []))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            place("bias_k", 1, 1, embed_dim)
            place("bias_v", 1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_qkv_same_embed_dim": True, **state})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.dim() == 3
        mask = as_numbers(attn_mask, "attn_mask", None, query)
        hidden = as_numbers(key_padding_mask, "key_padding_mask", attn_mask, query)
        unrecorded_self_attention = query is key is value and self._has_inference_kernel()
        if turned:
            # The same tensor stays the same: self-attention is one product.
            steps = {id(each): each.transpose(0, 1) for each in (query, key, value)}
            query, key, value = steps[id(query)], steps[id(key)], steps[id(value)]
        separate: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            separate = {f"{name}_proj_weight": getattr(self, f"{name}_proj_weight") for name in "qkv"}
        attended, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=hidden,
            need_weights=need_weights,
            attn_mask=mask,
            use_separate_proj_weight=bool(separate),
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        if turned:
            attended = attended.transpose(0, 1)
            if unrecorded_self_attention and not attended.requires_grad:
                attended = attended.contiguous()  # as PyTorch's inference kernel leaves it
        return attended, weights

    def _has_inference_kernel(self) -> bool:
        """Whether PyTorch computes self-attention of this module in one kernel when nothing is recorded."""
        plain = self.in_proj_weight is not None and self.in_proj_bias is not None and self.bias_k is None
        return plain and not (self.training or self.add_zero_attn or self.num_heads % 2)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks in one, and its kind: 1 for one of keys, (batch, length); 2 for one of every head."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2


MultiheadAttention.__module__ = __name__.replace("multihead_attention", "activation")
