"""Dropout of quantized tensors: they are made after training, so that nothing drops out."""

from __future__ import annotations

from typing import Any

from flambeau import nn

from ...._constructors import shown_as

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Dropout of codes: it passes them through, as in evaluation."""

    def forward(self, input: Any) -> Any:
        """The tensor itself."""
        return input

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The module of codes for a watched one of floats."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Dropout:
        """The module of codes for one of floats, whose scale does not change."""
        return cls(mod.p, mod.inplace)
