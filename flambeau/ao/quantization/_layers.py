"""Putting quantized layers into a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..._core.dtype import NAMES
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ..nn.quantized.dynamic import Linear as DynamicLinear
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


def quantize_dynamic(
    model: Any, qconfig_spec: Any = None, dtype: Any = NAMES["qint8"], mapping: Any = None, inplace: bool = False
) -> Any:
    """A copy of a model, or with `inplace` the model, whose linear layers have weights and inputs of 8 bits.

    `qconfig_spec` is a set of classes or of names of modules, by default `{torch.nn.Linear}`; other layers have no
    form of 8 bits here.
    """
    if dtype is not NAMES["qint8"]:
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    wanted = {Linear} if qconfig_spec is None else set(qconfig_spec)
    for each in wanted:
        if isinstance(each, type) and each is not Linear:
            raise NotImplementedError(f"quantize_dynamic: {each.__name__} has no form of 8 bits in Flambeau")

    def make(path: str, module: Module) -> Module | None:
        chosen = type(module) is Linear and (Linear in wanted or path in wanted)
        return DynamicLinear.from_float(module) if chosen else None

    result = model if inplace else copy.deepcopy(model)
    result.eval()
    if type(result) is Linear and Linear in wanted:
        return DynamicLinear.from_float(result)
    _exchanged(result, make)
    return result


def quantize_weights_(model: Any, bits: int = 8, group_size: int = 64) -> Any:
    """Give the linear layers of a model weights of 8 or 4 bits, in place; those whose inputs are no groups stay."""

    def make(path: str, module: Module) -> Module | None:
        fits = type(module) is Linear and (bits == 8 or module.in_features % group_size == 0)
        return WeightOnlyLinear.from_float(module, bits=bits, group_size=group_size) if fits else None

    _exchanged(model, make)
    return model
