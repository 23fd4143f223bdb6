"""From a graph that was watched to one of codes: observers become steps to codes and back, weights are rounded."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from .... import nn
from ....backends import quantized as engines
from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional as F
from ....nn.modules.module import Module
from ...nn.intrinsic.modules.fused import _FusedModule
from ..backend_config import BackendConfig
from ..backend_config.native import get_native_backend_config
from ..backend_config.utils import get_qat_module_classes, get_root_module_to_quantized_reference_module
from ..observer import _is_activation_post_process
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType
from ..quantize import _remove_configuration
from ..utils import (
    get_qparam_dict,
    get_swapped_custom_module_class,
    is_per_channel,
    weight_is_quantized,
)
from . import _steps as steps
from .custom_config import ConvertCustomConfig
from .fuse import modules_of
from .fuse_handler import set_module
from .lower_to_fbgemm import lower_to_fbgemm
from .qconfig_mapping_utils import _generate_node_name_to_qconfig
from .utils import ObservedGraphModuleAttrs, create_getattr_from_value, get_custom_module_class_keys

__all__ = ["convert", "convert_custom_module", "convert_standalone_module", "convert_weighted_module"]


# ----- observers -----------------------------------------------------------------------------------------------------


def _attribute_prefix(node: Node, attrs: ObservedGraphModuleAttrs) -> str:
    """The beginning of the names of an observer's scale: the module around what it sees, or around who uses that."""
    watched: Any = node.args[0]
    if attrs.node_name_to_qconfig.get(watched.name) is not None:
        return attrs.node_name_to_scope.get(watched.name, ("", None))[0]
    users = list(node.users)
    linear = [user for user in users if user.op == "call_function" and user.target is F.linear]
    user = (linear or users)[0] if users else None
    scope = attrs.node_name_to_scope.get(user.name, ("", None))[0] if user is not None else ""
    return f"{scope}_input"


def _replace_observer(model: GraphModule, node: Node, observer: Any, attrs: ObservedGraphModuleAttrs) -> None:
    """Steps to codes and back in the place of an observer; nothing where it watches floats that stay floats."""
    watched: Any = node.args[0]
    around = [watched, *node.users]
    graph: Graph = model.graph
    unconfigured = all(attrs.node_name_to_qconfig.get(each.name) is None for each in around)
    if unconfigured or observer.dtype is torch.float32:
        node.replace_all_uses_with(watched)
        graph.erase_node(node)
        return
    with graph.inserting_before(node):
        if getattr(observer, "is_dynamic", False):
            reduced = engines.engine in ("fbgemm", "x86")
            codes = graph.call_function(torch.quantize_per_tensor_dynamic, (watched, observer.dtype, reduced))
        elif observer.dtype is torch.float16:
            codes = graph.call_method("to", (watched, torch.float16))
        else:
            codes = _quantize(model, watched, observer, _attribute_prefix(node, attrs))
        back = graph.call_method("dequantize", (codes,))
    node.replace_all_uses_with(back)
    graph.erase_node(node)


def _quantize(model: GraphModule, watched: Node, observer: Any, prefix: str) -> Node:
    scale, zero_point = observer.calculate_qparams()
    channels = is_per_channel(observer.qscheme)
    values = (scale, zero_point) if channels else (float(scale), int(zero_point))
    names = (f"{prefix}_scale_", f"{prefix}_zero_point_")
    nodes = [create_getattr_from_value(model, model.graph, name, value) for name, value in zip(names, values, strict=True)]  # noqa: E501  # fmt: skip
    if channels:
        arguments = (watched, *nodes, int(observer.ch_axis), observer.dtype)
        return model.graph.call_function(torch.quantize_per_channel, arguments)
    return model.graph.call_function(torch.quantize_per_tensor, (watched, *nodes, observer.dtype))


def _run_observers_of_weights(model: GraphModule, modules: dict[str, Module]) -> None:
    """Let observers see the weights of functions: they may not have been run."""
    for node in model.graph.nodes:
        watched = node.args[0] if node.op == "call_module" and node.args else None
        if isinstance(watched, Node) and watched.op == "get_attr":
            module = modules[str(node.target)]
            if _is_activation_post_process(module):
                owner, _, last = str(watched.target).rpartition(".")
                module(getattr(modules[owner], last))


# ----- modules -------------------------------------------------------------------------------------------------------

_RECURRENT = (nn.RNNCellBase, nn.RNNBase)


def convert_weighted_module(
    node: Node,
    modules: dict[str, Module],
    observed_node_names: set[str],
    node_name_to_qconfig: dict[str, Any],
    backend_config: BackendConfig,
    is_decomposed: bool = False,
    is_reference: bool = False,
    model_device: Any = None,
) -> None:
    """Put a module that computes in floats with a rounded weight in the place of a layer."""
    path = str(node.target)
    original: Any = modules[path]
    trained = isinstance(original, get_qat_module_classes(backend_config))
    qconfig = node_name_to_qconfig.get(node.name)
    watch = getattr(original, "weight_fake_quant", None)
    if trained:
        original = original.to_float()
        set_module(modules, path, original)
    if qconfig is None or node.name not in observed_node_names or not weight_is_quantized(qconfig):
        return
    layer = original[0] if isinstance(original, _FusedModule) else original
    reference: Any = get_root_module_to_quantized_reference_module(backend_config).get(type(layer))
    if reference is None:
        return
    if isinstance(layer, _RECURRENT):
        parameters = {
            name: _watched(qconfig.weight(), value) for name, value in layer.named_parameters() if "weight" in name
        }
        made = reference.from_float(layer, parameters)
    else:
        made = reference.from_float(layer, _watched(watch or qconfig.weight(), layer.weight))
    if isinstance(original, _FusedModule):
        original[0] = made
    else:
        set_module(modules, path, made)


def _watched(observer: Any, weight: Any) -> dict[str, Any]:
    """The parameters that an observer chooses for a weight."""
    if not isinstance(observer, torch.ao.quantization.PlaceholderObserver):
        observer(weight)
        return get_qparam_dict(observer)
    return {"qscheme": None, "dtype": observer.dtype}


def convert_custom_module(
    node: Node,
    graph: Graph,
    modules: dict[str, Module],
    custom_module_class_mapping: dict[QuantType, dict[type, type]],
    statically_quantized_custom_module_nodes: set[Node],
) -> None:
    """Put a user's quantized module, which takes and gives codes, in the place of the one that was watched."""
    observed: Any = modules[str(node.target)]
    qconfig = observed.qconfig
    if not _static(qconfig):
        raise NotImplementedError("users' modules are quantized with scales that were found before")
    statically_quantized_custom_module_nodes.add(node)
    for arg in list(node.args):
        if steps.is_dequantize(arg):
            node.replace_input_with(arg, arg.args[0])
    for user in node.users:  # the observer of the result goes with the module, which needs its scale
        if user.op == "call_module" and _is_activation_post_process(modules[str(user.target)]):
            observed.activation_post_process = modules[str(user.target)]
    own: Any = get_swapped_custom_module_class(observed, custom_module_class_mapping, qconfig)
    set_module(modules, str(node.target), own.from_observed(observed))


def _static(qconfig: Any) -> bool:
    activation = qconfig.activation()
    return activation.dtype is not torch.float32 and not getattr(activation, "is_dynamic", False)


def convert_standalone_module(
    node: Node,
    modules: dict[str, Module],
    model: GraphModule,
    is_reference: bool,
    backend_config: BackendConfig | None,
) -> None:
    """Convert a module that was prepared apart."""
    own: Any = modules[str(node.target)]
    made = convert(own, is_reference, is_standalone_module=True, backend_config=backend_config)
    set_module(modules, str(node.target), made)


# ----- all of it -----------------------------------------------------------------------------------------------------


def _changed_qconfigs(model: GraphModule, attrs: ObservedGraphModuleAttrs, mapping: QConfigMapping) -> dict[str, Any]:
    """The configurations with which the model was prepared, without those that a new mapping takes away."""
    known = attrs.node_name_to_qconfig
    plain = {name: module for name, module in modules_of(model).items() if not _is_activation_post_process(module)}
    before = {name: getattr(module, "qconfig", None) for name, module in plain.items()}
    told = _generate_node_name_to_qconfig(model, modules_of(model), mapping, attrs.node_name_to_scope)
    for name, module in plain.items():
        module.qconfig = before[name]
    found = dict(known)
    for name, qconfig in known.items():
        if qconfig is None or name not in told:
            continue
        if told[name] is None:
            found[name] = None
        elif not qconfig_equals(told[name], qconfig):
            raise AssertionError(
                f"Expected key {name} in convert_fx to have the same qconfig as in prepare_fx: {qconfig}, got {told[name]}"  # noqa: E501
            )
    return found


def _give_codes(node: Node, indexes: list[int]) -> None:
    """Leave out the last step from codes where results are given as codes."""
    results: Any = node.args[0]
    for index, each in enumerate(results if isinstance(results, (list, tuple)) else [results]):
        if index in indexes and steps.is_dequantize(each):
            node.replace_input_with(each, each.args[0])


def convert(
    model: GraphModule,
    is_reference: bool = False,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
    _remove_qconfig_flag: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    is_decomposed: bool = False,
    keep_original_weights: bool = False,
) -> GraphModule:
    """The model of codes for one that was prepared; with `is_reference` it still computes in floats."""
    if is_decomposed:
        raise NotImplementedError("graphs of decomposed operators are not built")
    custom = ConvertCustomConfig.from_dict(convert_custom_config) if isinstance(convert_custom_config, dict) else convert_custom_config  # noqa: E501  # fmt: skip
    backend = BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config
    mapping = QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) else qconfig_mapping
    custom, backend = custom or ConvertCustomConfig(), backend or get_native_backend_config()
    attrs = model.meta.get("_observed_graph_module_attrs")
    if attrs is None:
        raise AssertionError("incoming model must be produced by prepare_fx")
    qconfigs = attrs.node_name_to_qconfig if mapping is None else _changed_qconfigs(model, attrs, mapping)
    attrs.node_name_to_qconfig = qconfigs
    modules = modules_of(model)
    _run_observers_of_weights(model, modules)
    _replace_all(model, modules, attrs, custom, backend, is_reference)
    model.graph.eliminate_dead_code()
    made = GraphModule(model, model.graph)
    made.delete_all_unused_submodules()
    made.meta = {name: value for name, value in model.meta.items() if name != "_observed_graph_module_attrs"}
    if not is_reference:
        made = lower_to_fbgemm(made, qconfigs, attrs.node_name_to_scope, keep_original_weights)
    if _remove_qconfig_flag:
        _remove_configuration(made)
    return made


def _replace_all(
    model: GraphModule,
    modules: dict[str, Module],
    attrs: ObservedGraphModuleAttrs,
    custom: ConvertCustomConfig,
    backend: BackendConfig,
    is_reference: bool,
) -> None:
    """Go through the graph once, in order."""
    given = attrs.prepare_custom_config
    classes = get_custom_module_class_keys(custom.observed_to_quantized_mapping)
    giving_codes: set[Node] = set()
    converted: set[str] = set()
    placeholders = 0
    for node in list(model.graph.nodes):
        if node.op == "placeholder":
            if placeholders in given.input_quantized_indexes:
                _take_codes(model.graph, node)
            placeholders += 1
        elif node.op == "output":
            _give_codes(node, given.output_quantized_indexes)
        elif node.op == "call_module":
            module = modules[str(node.target)]
            if _is_activation_post_process(module):
                if node.args[0] in giving_codes:
                    _only_back(model.graph, node)
                else:
                    _replace_observer(model, node, module, attrs)
            elif isinstance(module, GraphModule):
                convert_standalone_module(node, modules, model, is_reference, backend)
            elif type(module) in classes:
                mapping = custom.observed_to_quantized_mapping
                convert_custom_module(node, model.graph, modules, mapping, giving_codes)
            elif str(node.target) not in converted:
                observed = attrs.observed_node_names
                convert_weighted_module(node, modules, observed, attrs.node_name_to_qconfig, backend)
                converted.add(str(node.target))


def _take_codes(graph: Graph, node: Node) -> None:
    """Let all users of an input of codes see floats."""
    users = list(node.users)
    with graph.inserting_after(node):
        back = graph.call_method("dequantize", (node,))
    for user in users:
        user.replace_input_with(node, back)


def _only_back(graph: Graph, node: Node) -> None:
    """A step from codes alone, in the place of the observer of a module that gives codes."""
    with graph.inserting_before(node):
        back = graph.call_method("dequantize", (node.args[0],))
    node.replace_all_uses_with(back)
    graph.erase_node(node)
