"""From a graph to the messages of the `onnx` package."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from .._core.dtype import dtype as DType
from ._element_types import onnx_type
from ._graph import Graph, Node, Value
from ._sizes import Axis, Size
from .errors import OnnxExporterError

IR_VERSION = 10


def onnx_package(wanted_by: str) -> ModuleType:
    """The `onnx` package, which is imported when it is first needed."""
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise OnnxExporterError(
            f"{wanted_by} needs the package onnx, which is not installed: pip install 'flambeau[onnx]'"
        ) from error


def tensor_message(name: str, array: np.ndarray[Any, Any]) -> Any:
    """A tensor with its elements."""
    onnx = onnx_package("onnx.export")
    message = onnx.TensorProto()
    message.name = name
    message.data_type = onnx_type(array.dtype)
    message.dims.extend(array.shape)
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array
    message.raw_data = np.ascontiguousarray(little).tobytes()
    return message


def value_message(value: Value, axes: Mapping[tuple[str, int], str]) -> Any:
    """The type of an input or output; `axes` names dimensions that are not fixed."""
    onnx = onnx_package("onnx.export")
    shape: list[int | str | None] = []
    for dim, size in enumerate(value.shape or ()):
        named = axes.get((value.name, dim))
        if named is not None:
            shape.append(named)
        elif isinstance(size, Size):
            shape.append(size.term.name if isinstance(size.term, Axis) else f"{value.name}_dim_{dim}")
        else:
            shape.append(int(size))
    return onnx.helper.make_tensor_value_info(value.name, onnx_type(value.dtype), shape)


def _attribute(name: str, value: Any) -> Any:
    onnx = onnx_package("onnx.export")
    if isinstance(value, np.ndarray):
        return onnx.helper.make_attribute(name, tensor_message("", value))
    if isinstance(value, DType):
        value = onnx_type(value.numpy)
    if isinstance(value, (list, tuple)):
        value = [int(each) if isinstance(each, int) else each for each in value]
        if not value:
            return onnx.helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS)
    elif isinstance(value, int):
        value = int(value)
    return onnx.helper.make_attribute(name, value)


def node_message(node: Node) -> Any:
    """A node, with the module that it comes from."""
    onnx = onnx_package("onnx.export")
    message = onnx.NodeProto()
    message.op_type, message.domain, message.name = node.kind, node.domain, node.name
    message.input.extend(node.inputs)
    message.output.extend(node.outputs)
    message.attribute.extend(_attribute(*each) for each in node.attributes.items())
    if node.scope:
        entry = message.metadata_props.add()
        entry.key, entry.value = "module", node.scope[-1]
    return message


def model_message(
    graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value], axes: Mapping[tuple[str, int], str], name: str,
    *, values: bool = True, listed: bool = False,
) -> Any:  # fmt: skip
    """The whole model; `values`: with the constants' elements; `listed`: constants are inputs too."""
    onnx = onnx_package("onnx.export")
    message = onnx.ModelProto()
    message.ir_version = IR_VERSION
    message.producer_name = "flambeau"
    message.producer_version = _version()
    for domain, version in {"": graph.opset, **graph.domains}.items():
        entry = message.opset_import.add()
        entry.domain, entry.version = domain, version
    body = message.graph
    body.name = name
    body.input.extend(value_message(each, axes) for each in inputs)
    if listed or not values:
        extra = [Value(key, array.dtype, array.shape) for key, array in graph.constants.items()]
        body.input.extend(value_message(each, {}) for each in extra)
    body.output.extend(value_message(each, axes) for each in outputs)
    body.node.extend(node_message(each) for each in graph.nodes)
    if values:
        body.initializer.extend(tensor_message(*each) for each in graph.constants.items())
    return message


def _version() -> str:
    from .. import _RELEASE

    return _RELEASE
