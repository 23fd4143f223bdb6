"""Which layers take the place of others once their weights are sparse and quantized."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...nn.modules.linear import Linear

quantized: Any = import_module("flambeau.ao.nn.sparse.quantized")  # it has no file


def get_static_sparse_quantized_mapping() -> dict[type, type]:
    """For layers whose inputs are quantized."""
    return {Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping() -> dict[type, type]:
    """For layers that quantize their inputs themselves."""
    return {Linear: quantized.dynamic.Linear}
