"""Constants of ONNX export under their compiled module's name."""

from __future__ import annotations

import enum


class TrainingMode(enum.Enum):
    """In which mode a model is exported.

    Example:
        >>> torch.onnx.TrainingMode.EVAL.name
        'EVAL'
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """Which operators may be written.

    Example:
        >>> torch.onnx.OperatorExportTypes.ONNX.name
        'ONNX'
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.IntEnum):
    """The numbers that dtypes have in files.

    Example:
        >>> torch.onnx.TensorProtoDataType.FLOAT.value
        1
    """

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(12)
    UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2 = range(12, 20)
    FLOAT8E5M2FNUZ = 20
