"""Which layers take the place of others once their weights are sparse and quantized."""

from __future__ import annotations

from ...nn.modules.linear import Linear
from ..nn.sparse import quantized


def get_static_sparse_quantized_mapping() -> dict[type, type]:
    """For layers whose inputs are quantized."""
    return {Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping() -> dict[type, type]:
    """For layers that quantize their inputs themselves."""
    return {Linear: quantized.dynamic.Linear}
