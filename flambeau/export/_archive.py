"""Exported programs in files: the graph as JSON, tensors in the safetensors format. Reading one executes nothing."""

from __future__ import annotations

import io
import json
import operator
import os
import zipfile
from collections.abc import Callable
from typing import Any

import flambeau

from .._core.device import device as Device
from .._core.device import layout as Layout
from .._core.device import memory_format as MemoryFormat
from .._core.dtype import dtype as DType
from .._core.names.symbolic import sym_max, sym_min
from .._core.tensor import Tensor
from .._dispatch.public.overloads import OpOverload, overload_named
from .._torch._subclasses.fake_tensor import FakeTensorMode
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.parameter import Parameter
from ..ops._custom import OPERATORS
from ..safetensors import load as load_tensors
from ..safetensors import save as save_tensors
from ..utils._pytree import treespec_dumps, treespec_loads
from .exported_program import Calling, ExportedProgram, InputCheck, ValueRange
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

_VERSION = 1
_OPERATORS: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "floordiv": operator.floordiv, "truediv": operator.truediv, "pow": operator.pow, "sym_max": sym_max,
    "sym_min": sym_min,
}  # fmt: skip
"""The functions of numbers that a graph may call."""
_LIMIT = 1 << 30
"""How long the text of a graph may be."""


def save(
    ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, opset_version: Any = None,
    pickle_protocol: int = 2,
) -> None:  # fmt: skip
    """Write a program to a file or a buffer; `extra_files` are texts that go with it.

    Args:
        ep (ExportedProgram): the program.
        f: a path, or a file object.
        extra_files (dict, optional): texts by name.
        opset_version: versions of operators to note.
        pickle_protocol (int): the pickle protocol of weights. Default: `2`.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}'")
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", json.dumps(_written(ep)))
        for name, tensors in (("state_dict", ep.state_dict), ("constants", ep.constants)):
            own = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
            archive.writestr(f"{name}.safetensors", save_tensors(own))
        for name, text in (extra_files or {}).items():
            archive.writestr(f"extra_files/{name}", text)


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Any = None) -> ExportedProgram:
    """Read a program; texts that went with it come into `extra_files`, which names them.

    Args:
        f: a path, or a file object.
        extra_files (dict, optional): a dict with the names of texts to read.
        expected_opset_version: versions of operators; the file's must fit.

    Returns:
        ExportedProgram: the program.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> _ = file.seek(0)
        >>> torch.export.load(file).module()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    source = io.BytesIO(f.read()) if hasattr(f, "read") else os.fspath(f)
    with zipfile.ZipFile(source) as archive:
        if "program.json" not in archive.namelist():
            raise RuntimeError("not a program that flambeau.export.save has written: it has no program.json")
        if archive.getinfo("program.json").file_size > _LIMIT:
            raise RuntimeError("the graph of the program is larger than any that would be written")
        written = json.loads(archive.read("program.json"))
        state, constants = (load_tensors(archive.read(f"{each}.safetensors")) for each in ("state_dict", "constants"))
        for name in extra_files or {}:
            assert extra_files is not None
            extra_files[name] = archive.read(f"extra_files/{name}").decode("utf-8")
    return _read(written, state, constants)


# ----- writing ----------------------------------------------------------------------------------------------------


def _written(ep: ExportedProgram) -> dict[str, Any]:
    calling = ep._calling
    return {
        "version": _VERSION,
        "nodes": [_node(each) for each in ep.graph.nodes],
        "inputs": [[each.kind.name, _spec(each.arg), each.target, each.persistent]
                   for each in ep.graph_signature.input_specs],
        "outputs": [[each.kind.name, _spec(each.arg), each.target] for each in ep.graph_signature.output_specs],
        "names": calling.names,
        "in_spec": treespec_dumps(calling.in_spec),
        "out_spec": treespec_dumps(calling.out_spec),
        "checks": [_check(each) for each in calling.checks],
        "ranges": {name: list(each) for name, each in ep.range_constraints.items()},
        "parameters": [name for name, each in ep.state_dict.items() if isinstance(each, Parameter)],
        "trained": [name for name, each in ep.state_dict.items() if each.requires_grad],
    }  # fmt: skip


def _spec(arg: Any) -> Any:
    return [arg.name, _value(arg.value)] if isinstance(arg, ConstantArgument) else arg.name


def _check(check: Any) -> Any:
    if isinstance(check, InputCheck):
        return {"dtype": str(check.dtype), "shape": check.shape}
    return None if check is None else {"name": check.name, "value": _value(check.value)}


def _node(node: Node) -> dict[str, Any]:
    target = node.target
    if isinstance(target, OpOverload):
        text = f"{target.namespace}.{target._name}.{target._overloadname}"
    elif isinstance(target, str):
        text = target
    else:
        text = f"operator.{next(name for name, each in _OPERATORS.items() if each is target)}"
    found = {"op": node.op, "name": node.name, "target": text, "args": _value(list(node.args)),
             "kwargs": {key: _value(value) for key, value in node.kwargs.items()}}  # fmt: skip
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        found["val"] = [list(value.shape), list(value.stride()), str(value.dtype)]
    return found


def _value(value: Any) -> Any:
    """An argument as JSON: plain values as they are, all else as a dict of one entry that says what it is."""
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        items = [_value(each) for each in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    for kind, name in ((DType, "dtype"), (Device, "device"), (MemoryFormat, "memory_format"), (Layout, "layout")):
        if isinstance(value, kind):
            return {name: str(value)}
    raise TypeError(f"an argument of type {type(value).__name__} cannot be written: {value!r}")


# ----- reading ----------------------------------------------------------------------------------------------------


def _read(written: dict[str, Any], state: dict[str, Tensor], constants: dict[str, Tensor]) -> ExportedProgram:
    if written.get("version") != _VERSION:
        raise RuntimeError(f"the program was written in version {written.get('version')}; this reads {_VERSION}")
    graph = Graph()
    nodes: dict[str, Node] = {}
    fakes = FakeTensorMode()
    for each in written["nodes"]:
        args = tuple(_argument(value, nodes) for value in each["args"])
        kwargs = {key: _argument(value, nodes) for key, value in each["kwargs"].items()}
        node = graph.create_node(each["op"], _target(each["op"], each["target"]), args, kwargs, each["name"])
        node.name = each["name"]
        nodes[each["name"]] = node
        if "val" in each:
            shape, stride, dtype = each["val"]
            with fakes:
                node.meta["val"] = flambeau.empty_strided(shape, stride, dtype=_dtype(dtype))
    parameters, trained = set(written["parameters"]), set(written["trained"])
    weights = {
        name: Parameter(value, name in trained) if name in parameters else value for name, value in state.items()
    }
    inputs = [InputSpec(InputKind[kind], _read_spec(arg), target, persistent)
              for kind, arg, target, persistent in written["inputs"]]  # fmt: skip
    outputs = [OutputSpec(OutputKind[kind], _read_spec(arg), target) for kind, arg, target in written["outputs"]]
    calling = Calling(
        written["names"], treespec_loads(written["in_spec"]), treespec_loads(written["out_spec"]),
        [_read_check(each) for each in written["checks"]],
    )  # fmt: skip
    ranges = {name: ValueRange(*each) for name, each in written["ranges"].items()}
    module = GraphModule({}, graph)
    return ExportedProgram(module, ExportGraphSignature(inputs, outputs), weights, constants, calling, ranges)


def _target(op: str, text: str) -> Any:
    """What a node calls: an operator by its name. Nothing else is ever looked up, let alone imported."""
    if op != "call_function":
        return text
    namespace, _, rest = text.partition(".")
    if namespace == "operator" and rest in _OPERATORS:
        return _OPERATORS[rest]
    name, _, overload = rest.partition(".")
    if namespace in ("aten", "flambeau"):
        return overload_named(namespace, name, overload)
    if name in OPERATORS.get(namespace, {}):
        return getattr(getattr(getattr(flambeau.ops, namespace), name), overload)
    raise RuntimeError(f"the program calls {text}, which is no operator here")


def _argument(value: Any, nodes: dict[str, Node]) -> Any:
    if isinstance(value, list):
        return [_argument(each, nodes) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "node":
        return nodes[content]
    if kind == "tuple":
        return tuple(_argument(each, nodes) for each in content)
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        return complex(float.fromhex(content[0]), float.fromhex(content[1]))
    if kind == "device":
        return Device(content)
    if kind in ("dtype", "memory_format", "layout"):
        return _dtype(content)
    raise RuntimeError(f"the program has an argument of the unknown kind {kind!r}")


def _dtype(text: str) -> Any:
    """One of the package's own constants: a dtype, a memory format or a layout."""
    found = getattr(flambeau, text.removeprefix("torch."), None)
    if not isinstance(found, (DType, MemoryFormat, Layout)):
        raise RuntimeError(f"{text!r} is no dtype, memory format or layout")
    return found


def _read_spec(arg: Any) -> TensorArgument | ConstantArgument:
    if isinstance(arg, str):
        return TensorArgument(arg)
    name, value = arg
    return ConstantArgument(name, _argument(value, {}))


def _read_check(check: Any) -> InputCheck | ConstantArgument | None:
    if check is None:
        return None
    if "dtype" in check:
        return InputCheck(_dtype(check["dtype"]), check["shape"])
    return ConstantArgument(check["name"], _argument(check["value"], {}))
