"""`torch.onnx.utils`: the older exporter, not built."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("export is_in_onnx_export", "onnx")
    .absent("ONNX export is not built yet", functions="register_custom_op_symbolic unregister_custom_op_symbolic")
    .parts()
)
