"""Attention of parts that can be quantized: linear layers for queries, keys, values and the result."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ...._constructors import shown_as

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` of parts that can be quantized; products of queries and keys are of floats."""

    _FLOAT_MODULE = nn.MultiheadAttention
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        from ...quantized.modules.functional_modules import FloatFunctional

        options = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, **options
        )
        self.linear_Q: Any = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.linear_K: Any = nn.Linear(self.kdim, self.embed_dim, bias=bias, **options)
        self.linear_V: Any = nn.Linear(self.vdim, self.embed_dim, bias=bias, **options)
        self.out_proj: Any = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.q_scaling_product = FloatFunctional()
        stubs = torch.ao.quantization
        self.quant_attn_output = stubs.QuantStub()
        self.quant_attn_output_weights = stubs.QuantStub()
        self.dequant_q = stubs.DeQuantStub()
        self.dequant_k = stubs.DeQuantStub()
        self.dequant_v = stubs.DeQuantStub()

    _get_name = shown_as("Quantizable{}")

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """A quantizable module with the parameters of an ordinary one, watched if it has a configuration."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"from_float expects a {cls._FLOAT_MODULE.__name__}, not a {type(other).__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            together: Any = other.in_proj_weight
            weights = together.chunk(3)
        else:
            weights = other.q_proj_weight, other.k_proj_weight, other.v_proj_weight
        joined: Any = other.in_proj_bias
        biases = (None, None, None) if joined is None else joined.chunk(3)
        layers = (made.linear_Q, made.linear_K, made.linear_V)
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight.detach(), weight.requires_grad)
            layer.bias = None if bias is None else nn.Parameter(bias.detach(), bias.requires_grad)
        return torch.ao.quantization.prepare(made.eval(), inplace=True)

    @torch.jit.unused
    def dequantize(self) -> Any:
        """An ordinary module with the floats that the weights of this one stand for."""
        made = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, self.linear_Q.bias() is not None,
            self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        layers = (self.linear_Q, self.linear_K, self.linear_V, self.out_proj)
        pairs = [(each.weight(), each.bias()) for each in layers]
        weights = [weight.dequantize() for weight, _ in pairs]
        if made._qkv_same_embed_dim:
            made.in_proj_weight = nn.Parameter(torch.cat(weights[:3]))
        else:
            made.q_proj_weight, made.k_proj_weight, made.v_proj_weight = map(nn.Parameter, weights[:3])
        if made.in_proj_bias is not None:
            made.in_proj_bias = nn.Parameter(torch.cat([bias.detach() for _, bias in pairs[:3]]))
        made.out_proj.weight = nn.Parameter(weights[3])
        if pairs[3][1] is not None:
            made.out_proj.bias = nn.Parameter(pairs[3][1].detach())
        for name in ("bias_k", "bias_v"):
            value = getattr(self, name)
            setattr(made, name, None if value is None else nn.Parameter(value.dequantize()))
        return made

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """An error: `ao.nn.quantized.MultiheadAttention` is made of watched ones."""
        raise NotImplementedError(
            "It looks like you are trying to prepare an MHA module. Please, see the examples on quantizable MHAs."
        )

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The result, and the weights if they are wanted."""
        if is_causal and attn_mask is not None:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        steps, batch, width = query.shape
        if width != self.embed_dim or key.size(0) != value.size(0) or key.size(1) != value.size(1):
            raise AssertionError(
                f"queries of width {self.embed_dim}, and as many keys as values, are needed: the shapes are "
                f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
            )
        head = width // self.num_heads
        queries = self.q_scaling_product.mul_scalar(self.linear_Q(query), float(head) ** -0.5)
        keys, values = self.linear_K(key), self.linear_V(value)
        mask, padding = _as_bool(attn_mask, "attn_mask"), _as_bool(key_padding_mask, "key_padding_mask")
        mask = self._checked(mask, steps, batch, key.size(0))
        if self.bias_k is not None and self.bias_v is not None:
            keys = torch.cat([keys, self.bias_k.repeat(1, batch, 1)])
            values = torch.cat([values, self.bias_v.repeat(1, batch, 1)])
            mask, padding = _wider(mask), _wider(padding)
        queries, keys, values = self.dequant_q(queries), self.dequant_k(keys), self.dequant_v(values)
        queries, keys, values = (
            each.contiguous().view(-1, batch * self.num_heads, head).transpose(0, 1) for each in (queries, keys, values)
        )
        if padding is not None and (padding.size(0) != batch or padding.size(1) != keys.size(1)):
            raise AssertionError(f"key_padding_mask has shape {list(padding.shape)}")
        if self.add_zero_attn:
            keys, values = (torch.cat([each, each.new_zeros(each.size(0), 1, head)], 1) for each in (keys, values))
            mask, padding = _wider(mask), _wider(padding)
        scores = torch.bmm(queries, keys.transpose(1, 2))
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
        if padding is not None:
            scores = scores.view(batch, self.num_heads, steps, -1)
            scores = scores.masked_fill(padding.unsqueeze(1).unsqueeze(2), float("-inf"))
            scores = scores.view(batch * self.num_heads, steps, -1)
        weights = F.dropout(F.softmax(scores, -1), p=self.dropout, training=self.training)
        result = torch.bmm(weights, values)
        if self.batch_first:
            result = result.view(batch, steps, self.embed_dim)
        else:
            result = result.transpose(0, 1).contiguous().view(steps, batch, self.embed_dim)
        result = self.out_proj(self.quant_attn_output(result))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return result, None
        weights = weights.view(batch, self.num_heads, steps, -1)
        return result, weights.mean(1) if average_attn_weights else weights

    def _checked(self, mask: Any, steps: int, batch: int, keys: int) -> Any:
        """A mask with a first dimension of 1 or of all heads."""
        if mask is None:
            return None
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
        if mask.dim() != 3:
            raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
        if tuple(mask.shape) not in ((1, steps, keys), (batch * self.num_heads, steps, keys)):
            raise RuntimeError(f"The size of the {mask.dim()}D attn_mask is not correct: it is {list(mask.shape)}")
        return mask


def _as_bool(mask: Any, name: str) -> Any:
    if mask is not None and mask.dtype is torch.uint8:
        warnings.warn(
            f"Byte tensor for {name} in nn.MultiheadAttention is deprecated. Use bool tensor instead.", stacklevel=3
        )
        return mask.to(torch.bool)
    return mask


def _wider(mask: Any) -> Any:
    return None if mask is None else F.pad(mask, (0, 1))
