"""`torch.export.graph_signature`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("ExportBackwardSignature ExportGraphSignature", "export")
    .absent(
        "export is not built yet",
        classes="ConstantArgument CustomObjArgument InputKind InputSpec OutputKind OutputSpec SymBoolArgument "
        "SymFloatArgument SymIntArgument TensorArgument",
    )
    .parts()
)
