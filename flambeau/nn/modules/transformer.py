"""Transformers: encoders, decoders and their layers."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.constants import full
from ..._ops.nn.multi_head_attention import as_numbers
from .. import functional as F
from ..init import xavier_uniform_
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """-inf for later keys, 0 for the others."""
    return full((size, size), -math.inf, device=device, dtype=dtype).triu(1)


def _is_causal(mask: Any, hint: bool | None, length: int) -> bool:
    """Whether `mask` is the causal mask of that length: as `hint` says, or else by a look at it."""
    if hint is not None or mask is None:
        return hint is True
    if tuple(mask.shape) != (length, length):
        return False
    return bool((mask == _causal_mask(length, mask.device, mask.dtype)).all())


def _length(sequence: Tensor, batch_first: bool) -> Any:
    return sequence.shape[1 if batch_first and sequence.dim() == 3 else 0]


def _clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


_get_clones = _clones


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """The function of a name: "relu" or "gelu"."""
    return _function_of(activation)


def _function_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    found: Callable[[Tensor], Tensor] = getattr(F, activation)
    return found


class Transformer(Module):
    """An encoder that reads `src`, and a decoder that reads `tgt` and what the encoder made of `src`.

    Calls take `(src, tgt)` and, by name, masks: `src_mask`, `tgt_mask`, `memory_mask`, `src_key_padding_mask`,
    `tgt_key_padding_mask`, `memory_key_padding_mask`, `src_is_causal`, `tgt_is_causal` and `memory_is_causal`. True in
    a Boolean mask forbids attention.

    Args:
        d_model (int): how many features each position has. Default: `512`.
        nhead (int): how many heads the attention has; it divides `d_model`. Default: `8`.
        num_encoder_layers (int): how many layers the encoder has. Default: `6`.
        num_decoder_layers (int): how many layers the decoder has. Default: `6`.
        dim_feedforward (int): the width between the two linear layers of each layer. Default: `2048`.
        dropout (float): the probability with which an element becomes zero in training. Default: `0.1`.
        activation (str or callable): the nonlinearity between the linear layers: "relu", "gelu" or a function. Default:
            `relu`.
        custom_encoder (Module, optional): an encoder in place of the built-in one.
        custom_decoder (Module, optional): a decoder in place of the built-in one.
        layer_norm_eps (float): a number added to the variances in the norms. Default: `1e-05`.
        batch_first (bool): whether the batch is the first dimension of sequences; otherwise it is the second. Default:
            `False`.
        norm_first (bool): whether norms come before attention and linear layers, not after. Default: `False`.
        bias (bool): whether linear layers and norms have biases. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        src: (S, N, d_model), or (N, S, d_model) with `batch_first`, or (S, d_model)
        tgt: (T, N, d_model), or with the batch first, or without it
        output: the shape of `tgt`

    Raises:
        RuntimeError: source and target have other numbers of samples, or their last dimension is not `d_model`.

    Example:
        >>> model = flambeau.nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        >>> model(flambeau.ones(3, 5, 16), flambeau.ones(3, 4, 16)).shape
        torch.Size([3, 4, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*shape, **place)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*shape, **place)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise RuntimeError(
                "the batch number of src and tgt must be equal, but they are "
                f"{src.shape[batch_dim]} and {tgt.shape[batch_dim]}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model, {self.d_model}, but they are "
                f"{src.shape[-1]} and {tgt.shape[-1]}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that hides later elements from earlier ones: -inf above the diagonal, 0 elsewhere."""
        return _causal_mask(sz, device, dtype)


# ----- encoder -----------------------------------------------------------------------------------------------------


def _without_padding(layer: Any) -> str:
    """Why an encoder of such layers cannot leave padding out of its computation; an empty string if it can."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    obstacles = (
        (layer.norm_first, "encoder_layer.norm_first was True"),
        (
            not attention.batch_first,
            "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, "encoder_layer.self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "encoder_layer.self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "encoder_layer.activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "encoder_layer.self_attn.num_heads is odd"),
    )
    return next((reason for found, reason in obstacles if found), "")


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other, and a norm at the end.

    Calls take `src` and, by name, `mask`, `src_key_padding_mask` and `is_causal`.

    Args:
        encoder_layer (Module): the layer that is copied, such as a `TransformerEncoderLayer`.
        num_layers (int): how many copies there are.
        norm (Module, optional): what comes last.
        enable_nested_tensor (bool): whether padded positions become zeros before the norm, in evaluation without
            gradients. Default: `True`.
        mask_check (bool): whether that happens only for padding at the ends of sequences. Default: `True`.

    Shape:
        src: as the layer's
        output: the shape of `src`

    Example:
        >>> layer = flambeau.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        >>> flambeau.nn.TransformerEncoder(layer, num_layers=2)(flambeau.ones(3, 5, 16)).shape
        torch.Size([3, 5, 16])
    """

    __constants__: ClassVar = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _without_padding(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}",
                UserWarning,
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def _leaves_padding_out(self, src: Any, mask: Any, padding: Any) -> bool:
        first = self.layers[0]
        if not getattr(self, "use_nested_tensor", False) or first.training:
            return False
        if src.dim() != 3 or padding is None or mask is not None:
            return False
        if THREAD.modes.grad and (src.requires_grad or any(each.requires_grad for each in first.parameters())):
            return False
        present = padding.logical_not()
        return not getattr(self, "mask_check", True) or bool((present[:, 1:] <= present[:, :-1]).all())

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = as_numbers(src_key_padding_mask, "src_key_padding_mask", mask, src, "mask")
        mask = as_numbers(mask, "mask", None, src)
        first: Any = self.layers[0]
        causal = _is_causal(mask, is_causal, _length(src, first.self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if self._leaves_padding_out(src, mask, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        if self.norm is not None:
            output = self.norm(output)
        return output


class _TransformerLayer(Module):
    """What encoder and decoder layers share: attentions and two linear layers, each with dropout and a norm."""

    __constants__: ClassVar = ["norm_first"]

    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place)
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for number in parts:
            self.add_module(f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for number in parts:
            self.add_module(f"dropout{number}", Dropout(dropout))
        self._set_activation(_function_of(activation))

    def _set_activation(self, function: Callable[[Tensor], Tensor]) -> None:
        self.activation = function

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        """Self-attention."""
        attended, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(attended)


@documented_like(Transformer)
class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a network of two linear layers, each with dropout, a residual connection and a norm.

    `x = norm1(src + attention(src))`, then `norm2(x + linear2(activation(linear1(x))))`; with `norm_first` the norms
    come before the attention and the network. Calls take `src` and, by name, `src_mask`, `src_key_padding_mask` and
    `is_causal`.

    Args:
        d_model (int): how many features each position has.
        nhead (int): how many heads the attention has; it divides `d_model`.
        dim_feedforward (int): the width between the two linear layers. Default: `2048`.

    Shape:
        src: (S, N, d_model), or (N, S, d_model) with `batch_first`, or (S, d_model)
        output: the shape of `src`

    Raises:
        AssertionError: `d_model` does not divide into `nhead`.

    Example:
        >>> layer = flambeau.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        >>> layer(flambeau.ones(3, 5, 16)).shape
        torch.Size([3, 5, 16])
    """

    def _set_activation(self, function: Callable[[Tensor], Tensor]) -> None:
        self.activation_relu_or_gelu = 0
        if function is F.relu or isinstance(function, ReLU):
            self.activation_relu_or_gelu = 1
        elif function is F.gelu or isinstance(function, GELU):
            self.activation_relu_or_gelu = 2
        self.activation = function

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding = as_numbers(src_key_padding_mask, "src_key_padding_mask", src_mask, src, "src_mask")
        mask = as_numbers(src_mask, "src_mask", None, src)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Any) -> Tensor:
        """The two linear layers."""
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


# ----- decoder -----------------------------------------------------------------------------------------------------


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other, and a norm at the end.

    Calls take `(tgt, memory)` and, by name, `tgt_mask`, `memory_mask`, `tgt_key_padding_mask`,
    `memory_key_padding_mask`, `tgt_is_causal` and `memory_is_causal`.

    Args:
        decoder_layer (Module): the layer that is copied, such as a `TransformerDecoderLayer`.
        num_layers (int): how many copies there are.
        norm (Module, optional): what comes last.

    Shape:
        tgt, memory: as the layer's
        output: the shape of `tgt`

    Example:
        >>> layer = flambeau.nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
        >>> decoder = flambeau.nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(flambeau.ones(3, 4, 16), flambeau.ones(3, 5, 16)).shape
        torch.Size([3, 4, 16])
    """

    __constants__: ClassVar = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        first: Any = self.layers[0]
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, first.self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        if self.norm is not None:
            output = self.norm(output)
        return output


@documented_like(TransformerEncoderLayer)
class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's output, and a network of two linear layers.

    Each part has dropout, a residual connection and a norm. Calls take `(tgt, memory)`, where `memory` is the encoder's
    output, and, by name, `tgt_mask`, `memory_mask`, `tgt_key_padding_mask`, `memory_key_padding_mask`, `tgt_is_causal`
    and `memory_is_causal`.

    Shape:
        tgt: (T, N, d_model), or (N, T, d_model) with `batch_first`, or (T, d_model)
        memory: (S, N, d_model), or with the batch first, or without it
        output: the shape of `tgt`

    Raises:
        AssertionError: `d_model` does not divide into `nhead`.

    Example:
        >>> layer = flambeau.nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
        >>> layer(flambeau.ones(3, 4, 16), flambeau.ones(3, 5, 16)).shape
        torch.Size([3, 4, 16])
    """

    _attentions = ("self_attn", "multihead_attn")

    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        """Attention to the encoder's output."""
        attended, _ = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(attended)

    def _ff_block(self, x: Any) -> Tensor:
        """The two linear layers."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
