"""Programs as graphs of operators that need no Python of their own, under the names of `torch.export`."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("draft_export export export_for_training", "export._entry")
    .elsewhere("load save", "export._archive")
    .elsewhere("register_dataclass", "export._entry")
    .elsewhere("AdditionalInputs Constraint Dim ShapesCollection dims", "export.dynamic_shapes")
    .elsewhere("ExportedProgram ModuleCallEntry ModuleCallSignature default_decompositions", "export.exported_program")
    .elsewhere("ExportBackwardSignature ExportGraphSignature", "export.graph_signature")
    .elsewhere("FlatArgsAdapter UnflattenedModule unflatten", "export.unflatten")
    .elsewhere("CustomDecompTable", "export.decomp_utils")
    .submodules("decomp_utils dynamic_shapes exported_program graph_signature unflatten")
    .parts()
)
