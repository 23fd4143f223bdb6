"""`torch.onnx.utils`: the names of the older exporter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._core.names.absent import Table
from .._torch._C._onnx import OperatorExportTypes, TrainingMode

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("is_in_onnx_export register_custom_op_symbolic unregister_custom_op_symbolic", "onnx")
    .parts()
)


def export(
    model: Any,
    args: Any,
    f: str,
    *,
    kwargs: dict[str, Any] | None = None,
    export_params: bool = True,
    verbose: bool = False,
    training: Any = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    opset_version: int | None = None,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Any]] = False,
    autograd_inlining: bool = True,
) -> None:
    """Write a model to the file `f`: `onnx.export` in its older style."""
    from ._export import export as write

    write(
        model, args, f, kwargs=kwargs, export_params=export_params, verbose=verbose, training=training,
        input_names=input_names, output_names=output_names, opset_version=opset_version, dynamo=False,
        do_constant_folding=do_constant_folding, dynamic_axes=dynamic_axes, custom_opsets=custom_opsets,
        keep_initializers_as_inputs=bool(keep_initializers_as_inputs),
        export_modules_as_functions=export_modules_as_functions,
    )  # fmt: skip
