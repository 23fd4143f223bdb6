"""`torch.onnx.utils`: the names of the older exporter."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("export is_in_onnx_export register_custom_op_symbolic unregister_custom_op_symbolic", "onnx")
    .parts()
)
