"""`QuantType`: how a layer is quantized."""

from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """Scales of activations found anew for each batch, found before, or not at all."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


_NAMES = {
    QuantType.STATIC: "static",
    QuantType.DYNAMIC: "dynamic",
    QuantType.QAT: "qat",
    QuantType.WEIGHT_ONLY: "weight_only",
}


def _get_quant_type_to_str(quant_type: QuantType) -> str:
    return _NAMES[quant_type]


def _quant_type_from_str(name: str) -> QuantType:
    for quant_type, each in _NAMES.items():
        if each == name:
            return quant_type
    raise ValueError(f"Unknown QuantType name '{name}'")
