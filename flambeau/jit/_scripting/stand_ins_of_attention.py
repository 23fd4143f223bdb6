"""Attention and transformers for TorchScript: see `stand_ins.py`. These functions are read, not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
import flambeau.nn.functional as F

from ... import nn
from ..._core.tensor import Tensor


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers that are added to scores."""
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
    return mask.to(like.dtype)


def _multihead_attention(
    self: Any, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:  # fmt: skip
    assert query.dim() == 3, "attention is written for batches"
    if not self.batch_first:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
    if self.in_proj_weight is not None:
        parts = self.in_proj_weight.chunk(3)
    else:
        parts = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
    q, k, v = F.linear(query, parts[0]), F.linear(key, parts[1]), F.linear(value, parts[2])
    if self.in_proj_bias is not None:
        biases = self.in_proj_bias.chunk(3)
        q, k, v = q + biases[0], k + biases[1], v + biases[2]
    batch, length, count = q.size(0), q.size(1), k.size(1)
    q = q.view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
    k = k.view(batch, count, self.num_heads, self.head_dim).transpose(1, 2)
    v = v.view(batch, count, self.num_heads, self.head_dim).transpose(1, 2)
    mask: Tensor | None = None
    if attn_mask is not None:
        numbers = _added(attn_mask, q)
        mask = numbers.view(batch, self.num_heads, length, count) if numbers.dim() == 3 else numbers
    if key_padding_mask is not None:
        padding = _added(key_padding_mask, q).view(batch, 1, 1, count)
        mask = padding if mask is None else mask + padding
    weights: Tensor | None = None
    if need_weights:
        scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
        attended = F.dropout(scores.softmax(-1), self.dropout, self.training)
        weights = attended.mean(1) if average_attn_weights else attended
        output = attended @ v
    else:
        output = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)
    output = output.transpose(1, 2).reshape(batch, length, self.embed_dim)
    output = F.linear(output, self.out_proj.weight, self.out_proj.bias)
    return output if self.batch_first else output.transpose(0, 1), weights


def _encoder_layer(
    self: Any, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Any:  # fmt: skip
    x = src
    y = self.norm1(x) if self.norm_first else x
    x = x + self.dropout1(self.self_attn(y, y, y, src_key_padding_mask, False, src_mask)[0])
    if not self.norm_first:
        x = self.norm1(x)
    y = self.norm2(x) if self.norm_first else x
    x = x + self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(y)))))
    return x if self.norm_first else self.norm2(x)


def _decoder_layer(
    self: Any, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    tgt_is_causal: bool = False, memory_is_causal: bool = False,
) -> Any:  # fmt: skip
    x = tgt
    y = self.norm1(x) if self.norm_first else x
    x = x + self.dropout1(self.self_attn(y, y, y, tgt_key_padding_mask, False, tgt_mask)[0])
    if not self.norm_first:
        x = self.norm1(x)
    y = self.norm2(x) if self.norm_first else x
    x = x + self.dropout2(self.multihead_attn(y, memory, memory, memory_key_padding_mask, False, memory_mask)[0])
    if not self.norm_first:
        x = self.norm2(x)
    y = self.norm3(x) if self.norm_first else x
    x = x + self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(y)))))
    return x if self.norm_first else self.norm3(x)


def _encoder(
    self: Any, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Any:  # fmt: skip
    output = src
    for layer in self.layers:
        output = layer(output, mask, src_key_padding_mask)
    return output if self.norm is None else self.norm(output)


def _decoder(
    self: Any, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
) -> Any:  # fmt: skip
    output = tgt
    for layer in self.layers:
        output = layer(output, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    return output if self.norm is None else self.norm(output)


def _transformer(
    self: Any, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
    memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
) -> Any:  # fmt: skip
    memory = self.encoder(src, src_mask, src_key_padding_mask)
    return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


OF_ATTENTION: dict[type, Callable[..., Any]] = {
    nn.MultiheadAttention: _multihead_attention,
    nn.TransformerEncoderLayer: _encoder_layer,
    nn.TransformerDecoderLayer: _decoder_layer,
    nn.TransformerEncoder: _encoder,
    nn.TransformerDecoder: _decoder,
    nn.Transformer: _transformer,
}
