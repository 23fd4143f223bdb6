"""Exported programs, under the names of `torch.export`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "export is not built yet",
        functions="default_decompositions dims draft_export export load register_dataclass save unflatten "
        "export_for_training export_for_inference",
        classes="AdditionalInputs Constraint CustomDecompTable Dim ExportBackwardSignature ExportedProgram "
        "ExportGraphSignature FlatArgsAdapter ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule",
    )
    .submodules("dynamic_shapes exported_program graph_signature")
    .parts()
)
