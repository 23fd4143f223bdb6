"""Files in the ONNX format, under the names of `torch.onnx`: models are exported to them and read from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("sizes that may differ are not guessed from calls: dynamic_shapes says them", classes="InputObserver")
    .elsewhere("ExportableModule", "onnx._exportable")
    .elsewhere("OnnxExporterError", "onnx.errors")
    .elsewhere("export", "onnx._export")
    .elsewhere("ONNXProgram", "onnx._program")
    .elsewhere("load_module", "onnx._reading")
    .elsewhere("OperatorExportTypes TensorProtoDataType TrainingMode", "_C._onnx")
    .submodules(
        "errors ops operators symbolic_helper symbolic_opset9 symbolic_opset11 symbolic_opset12 "
        "testing utils verification"
    )
    .parts()
)


def is_in_onnx_export() -> bool:
    """Whether a model is being exported.

    Returns:
        bool: whether one is.

    Example:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    from ._export import EXPORTING

    return EXPORTING[0]


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Keep a rule for an operator of one's own, `rule(g, *arguments)`, for the exporter.

    Args:
        symbolic_name (str): the operator's name, such as "mine::double".
        symbolic_fn (Callable): the rule.
        opset_version (int): the version of ONNX's operators that it is for.

    Example:
        >>> torch.onnx.register_custom_op_symbolic("mine::double", lambda g, x: g.op("Add", x, x), 18)
        >>> torch.onnx.unregister_custom_op_symbolic("mine::double", 18)
    """
    from ._custom import SYMBOLIC

    if "::" not in symbolic_name:
        raise ValueError(f"expected the name of an operator as 'domain::name', got {symbolic_name!r}")
    SYMBOLIC[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget such a rule.

    Args:
        symbolic_name (str): the operator's name.
        opset_version (int): the version that it was registered for.

    Example:
        >>> torch.onnx.register_custom_op_symbolic("mine::double", lambda g, x: g.op("Add", x, x), 18)
        >>> torch.onnx.unregister_custom_op_symbolic("mine::double", 18)
    """
    from ._custom import SYMBOLIC

    SYMBOLIC.pop((symbolic_name, opset_version), None)
