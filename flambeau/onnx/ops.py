"""`torch.onnx.ops`: operators of the format as functions, not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "ONNX export is not built yet",
        functions="aten_decompositions attention rotary_embedding symbolic symbolic_multi_out",
    )
    .parts()
)
