"""How many multiplications with addition a layer needs for an output: those of its weights, which outweigh the rest."""

from __future__ import annotations

import math
from typing import Any

from .. import nn
from .._core.tensor import Tensor
from ..nn.modules.conv import _ConvNd, _ConvTransposeNd
from ..nn.modules.rnn import RNNBase, RNNCellBase
from ..nn.utils.rnn import PackedSequence


def mult_adds(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> int:
    """The multiply-adds of one call; 0 for layers without matrix products and for containers of others."""
    if isinstance(module, nn.MultiheadAttention):
        return _of_attention(module, inputs)
    if isinstance(module, (RNNBase, RNNCellBase)):
        return _steps(inputs[0]) * sum(each.numel() for each in module.parameters() if each.dim() == 2)
    if not isinstance(output, Tensor):
        return 0
    if isinstance(module, _ConvTransposeNd):
        return int(inputs[0].numel()) * module.weight[0].numel()
    if isinstance(module, (nn.Linear, nn.Bilinear, _ConvNd)):
        return output.numel() * module.weight[0].numel()
    return 0


def _steps(input: Any) -> int:
    """How many vectors a recurrent layer reads."""
    shape = input.data.shape if isinstance(input, PackedSequence) else input.shape
    return math.prod(shape[:-1])


def _of_attention(module: nn.MultiheadAttention, inputs: tuple[Any, ...]) -> int:
    """Projections of query, key, value and result, and the two products between them."""
    query: Tensor
    key: Tensor
    value: Tensor
    query, key, value = inputs[:3]
    batch = query.shape[0 if module.batch_first else 1] if query.dim() == 3 else 1
    length, source = query.numel() // query.shape[-1], key.numel() // key.shape[-1]
    width = module.embed_dim
    projections = width * (2 * length * width + source * (key.shape[-1] + value.shape[-1]))
    count: int = projections + 2 * length * (source // batch) * width
    return count
