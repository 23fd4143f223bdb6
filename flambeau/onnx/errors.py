"""What exporting raises and warns of."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of the exporter."""


class OnnxExporterError(RuntimeError):
    """An error of the exporter.

    Example:
        >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
        True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An operator that the format does not have."""


class SymbolicValueError(OnnxExporterError):
    """A value that the exporter cannot express."""
