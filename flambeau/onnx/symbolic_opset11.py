"""Operators of ONNX's opset 11 for the older exporter: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "ONNX export is not built yet",
        functions="add squeeze unsqueeze select",
    )
    .parts()
)
