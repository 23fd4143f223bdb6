"""Operators of ONNX's opset 12 for the older exporter: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "ONNX export is not built yet",
        functions="einsum dropout",
    )
    .parts()
)
