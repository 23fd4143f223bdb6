"""Reading ONNX files: a graph is run operator by operator, each by Flambeau's ops."""

from __future__ import annotations

from . import control, image, index, linalg, nn, pointwise, quantized, reduce, rnn, shape
from ._table import READERS, NotRead, Operator
from .files import OnnxFileError
from .module import ONNXModule, load_module

__all__ = ["READERS", "NotRead", "ONNXModule", "OnnxFileError", "Operator", "load_module"]
