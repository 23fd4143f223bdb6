"""Putting quantized layers into a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ..nn.quantized.weight_only import WeightOnlyLinear


def _exchanged(module: Module, make: Callable[[str, Module], Module | None], path: str = "") -> None:
    """Put what `make` gives for a module below into its place."""
    for name, child in list(module.named_children()):
        full = f"{path}.{name}" if path else name
        made = make(full, child)
        if made is None:
            _exchanged(child, make, full)
        else:
            setattr(module, name, made)


def quantize_weights_(model: Any, bits: int = 8, group_size: int = 64) -> Any:
    """Give the linear layers of a model weights of 8 or 4 bits, in place; those whose inputs are no groups stay."""

    def make(path: str, module: Module) -> Module | None:
        fits = type(module) is Linear and (bits == 8 or module.in_features % group_size == 0)
        return WeightOnlyLinear.from_float(module, bits=bits, group_size=group_size) if fits else None

    _exchanged(model, make)
    return model
