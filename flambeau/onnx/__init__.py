"""Files in the ONNX format, under the names of `torch.onnx`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("ONNX export is not built yet", functions="export", classes="ONNXProgram ExportableModule InputObserver")
    .elsewhere("OnnxExporterError", "onnx.errors")
    .elsewhere("OperatorExportTypes TrainingMode", "_C._onnx")
    .submodules("errors ops operators symbolic_helper utils")
    .parts()
)


def is_in_onnx_export() -> bool:
    """Whether a model is being exported."""
    return False
