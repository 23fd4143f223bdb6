"""`torch.export.exported_program`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("ExportedProgram ModuleCallEntry ModuleCallSignature default_decompositions", "export")
    .parts()
)
