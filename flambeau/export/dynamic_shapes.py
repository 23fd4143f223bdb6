"""`torch.export.dynamic_shapes`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("AdditionalInputs Constraint Dim ShapesCollection dims", "export")
    .absent("export is not built yet", functions="refine_dynamic_shapes_from_suggested_fixes")
    .parts()
)
