"""`torch.onnx.symbolic_helper`: rules for exporting, which have no use before export is built."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("ONNX export is not built yet", functions="parse_args quantized_args").parts()
)
