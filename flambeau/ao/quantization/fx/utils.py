"""Questions about the nodes of a graph, and small steps that build one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau as torch

from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional as F
from ....nn.modules.module import Module
from ....ops import quantized
from ..observer import _is_activation_post_process
from ..quant_type import QuantType
from .custom_config import PrepareCustomConfig

__all__ = [
    "EMPTY_ARG_DICT", "NON_OBSERVABLE_ARG_DICT", "NON_QUANTIZABLE_WEIGHT_OPS", "NodeInfo", "ObservedGraphModuleAttrs",
    "all_node_args_except_first", "all_node_args_have_no_tensors", "assert_and_get_unique_device",
    "collect_producer_nodes", "create_getattr_from_value", "create_node_from_old_node_preserve_meta",
    "get_custom_module_class_keys", "get_linear_prepack_op_for_dtype", "get_new_attr_name_with_prefix",
    "get_non_observable_arg_indexes_and_types", "get_qconv_prepack_op", "get_skipped_module_name_and_classes",
    "graph_module_from_producer_nodes", "maybe_get_next_module", "node_arg_is_bias", "node_arg_is_weight",
    "return_arg_list",
]  # fmt: skip

NON_QUANTIZABLE_WEIGHT_OPS = {F.layer_norm, F.group_norm, F.instance_norm}


class NodeInfo(NamedTuple):
    """What a node calls."""

    op: str
    target: Any


@dataclasses.dataclass
class ObservedGraphModuleAttrs:
    """What `prepare_fx` knows of a model and `convert_fx` needs."""

    node_name_to_qconfig: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, type]]
    prepare_custom_config: PrepareCustomConfig
    equalization_node_name_to_qconfig: dict[str, Any]
    qconfig_mapping: Any
    is_qat: bool
    observed_node_names: set[str]
    is_observed_standalone_module: bool = False
    standalone_module_input_quantized_idxs: list[int] | None = None
    standalone_module_output_quantized_idxs: list[int] | None = None


# ----- arguments that are no tensors of floats -----------------------------------------------------------------------

Indices = Callable[[Node], list[int]]


def return_arg_list(arg_indices: list[int]) -> Indices:
    """What gives those of the positions that a node has."""
    return lambda node: [each for each in arg_indices if each < len(node.args)]


def all_node_args_except_first(node: Node) -> list[int]:
    """All positions but the first."""
    return list(range(1, len(node.args)))


EMPTY_ARG_DICT: dict[type | torch.dtype, Indices] = {}
NON_OBSERVABLE_ARG_DICT: dict[NodeInfo, dict[Any, Indices]] = {
    NodeInfo("call_method", "masked_fill"): {torch.bool: return_arg_list([1]), float: return_arg_list([2])},
    NodeInfo("call_method", "size"): {int: return_arg_list([1])},
    **{
        NodeInfo("call_method", target): {int: all_node_args_except_first}
        for target in ("permute", "repeat", "reshape", "transpose", torch.transpose, "view")
    },
    **{
        NodeInfo("call_method", target): {int: return_arg_list([1])}
        for target in ("unsqueeze", "unsqueeze_", torch.unsqueeze)
    },
}


def get_non_observable_arg_indexes_and_types(node: Node) -> dict[Any, Indices]:
    """For each type that is not observed, what gives the positions of such arguments."""
    return NON_OBSERVABLE_ARG_DICT.get(NodeInfo(node.op, node.target), EMPTY_ARG_DICT)


def all_node_args_have_no_tensors(node: Node, modules: dict[str, Module], cache: dict[Node, bool]) -> bool:
    """Whether it is sure that a node gets and gives no tensor; False where it is not known."""
    if node not in cache:
        cache[node] = False  # a node is asked about again only through a cycle of its own
        cache[node] = _no_tensors(node, modules, cache)
    return cache[node]


def _no_tensors(node: Node, modules: dict[str, Module], cache: dict[Node, bool]) -> bool:
    if node.op in ("placeholder", "get_attr"):
        return False
    if node.op == "call_module" and not _is_activation_post_process(modules[str(node.target)]):
        return False
    if node.op == "call_function" and node.target is getattr and node.args[1] in ("ndim", "shape"):
        return True
    if node.op == "call_method" and node.target == "size":
        return True
    inputs = node.all_input_nodes
    return bool(inputs) and all(all_node_args_have_no_tensors(each, modules, cache) for each in inputs)


# ----- weights and biases of functions -------------------------------------------------------------------------------


def _stands_as(node: Node, arg: Any, kind: str) -> bool:
    """Whether an argument stands where the weight, or the bias, of a prepared node does."""
    index = node.meta.get("target_dtype_info", {}).get(f"{kind}_index")
    placed = index is not None and index < len(node.args) and node.args[index] is arg
    return placed or node.kwargs.get(kind) is arg


def node_arg_is_weight(node: Node, arg: Any) -> bool:
    """Whether an argument is the weight of the node's function."""
    return _stands_as(node, arg, "weight")


def node_arg_is_bias(node: Node, arg: Any) -> bool:
    """Whether an argument is the bias of the node's function."""
    return _stands_as(node, arg, "bias")


def get_linear_prepack_op_for_dtype(dtype: Any) -> Callable[..., Any]:
    """What packs the weight of a linear map."""
    if dtype is torch.float16:
        return quantized.linear_prepack_fp16
    if dtype is torch.qint8:
        return quantized.linear_prepack
    raise Exception("can't get linear prepack op for dtype:", dtype)


def get_qconv_prepack_op(conv_op: Callable[..., Any]) -> Callable[..., Any]:
    """What packs the weight of a convolution."""
    names = [f"{kind}{number}d" for kind in ("conv", "conv_transpose") for number in (1, 2, 3)]
    found = {getattr(F, name): getattr(quantized, f"{name}_prepack") for name in names}.get(conv_op)
    if found is None:
        raise AssertionError(f"Didn't find prepack op for {conv_op}")
    packer: Callable[..., Any] = found
    return packer


# ----- building ------------------------------------------------------------------------------------------------------


def get_new_attr_name_with_prefix(prefix: str) -> Callable[[Module], str]:
    """What gives the first attribute name of a module that is free, of a beginning and a number."""
    prefix = prefix.replace(".", "_")

    def name_for(module: Module) -> str:
        number = 0
        while hasattr(module, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    return name_for


def assert_and_get_unique_device(module: Module) -> Any:
    """The one device of a module, or None if it has no tensors; several are an error."""
    devices = {each.device for each in (*module.parameters(), *module.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


def create_getattr_from_value(module: Any, graph: Graph, prefix: str, value: Any, device: Any = None) -> Node:
    """A node that reads a value, which becomes a buffer of the module."""
    name = get_new_attr_name_with_prefix(prefix)(module)
    own_device = assert_and_get_unique_device(module) if device is None else device
    tensor = value.detach().clone() if isinstance(value, torch.Tensor) else torch.tensor(value)
    module.register_buffer(name, tensor if own_device is None else tensor.to(own_device))
    return graph.create_node("get_attr", name)


def create_node_from_old_node_preserve_meta(
    quantized_graph: Graph, create_node_args: tuple[Any, ...], old_node: Node
) -> Node:
    """A new node with the notes of an old one."""
    made = quantized_graph.create_node(*create_node_args)
    made.stack_trace = old_node.stack_trace
    return made


def collect_producer_nodes(node: Node) -> list[Node] | None:
    """The nodes that a node is made of, itself first; None if an input of the graph is among them."""
    found, pending = [node], [node]
    while pending:
        for each in pending.pop().all_input_nodes:
            if each.op == "placeholder":
                return None
            if each not in found:
                found.append(each)
                if each.op != "get_attr":
                    pending.append(each)
    return found


def graph_module_from_producer_nodes(root: GraphModule, producer_nodes: list[Node]) -> GraphModule:
    """A graph of such nodes alone; it returns what the first of them gives."""
    if not producer_nodes:
        raise AssertionError("list of producer nodes can not be empty")
    graph = Graph()
    made: dict[Node, Node] = {}
    for node in reversed(producer_nodes):
        made[node] = graph.node_copy(node, lambda each: made[each])
    graph.output(made[producer_nodes[0]])
    return GraphModule(root, graph)


def maybe_get_next_module(
    node: Node, modules: dict[str, Module], target_module_type: type | None = None, target_functional_type: Any = None
) -> Node | None:
    """The first user of a node that is a module of a class, or a call of a function."""
    for user in node.users:
        if user.op == "call_module" and target_module_type is not None:
            if isinstance(modules[str(user.target)], target_module_type):
                return user
        elif user.op == "call_function" and target_functional_type is not None and user.target == target_functional_type:  # noqa: E501  # fmt: skip
            return user
    return None


# ----- what a user's configuration names -----------------------------------------------------------------------------


def get_custom_module_class_keys(custom_module_mapping: dict[QuantType, dict[type, type]]) -> list[Any]:
    """The classes of users' modules, of all kinds of quantization."""
    return list({kind: None for classes in custom_module_mapping.values() for kind in classes})


def get_skipped_module_name_and_classes(
    prepare_custom_config: PrepareCustomConfig, is_standalone_module: bool
) -> tuple[list[str], list[type[Any]]]:
    """The names and classes of modules whose insides are not traced."""
    own = prepare_custom_config
    names, classes = list(own.non_traceable_module_names), list(own.non_traceable_module_classes)
    if not is_standalone_module:
        names += own.standalone_module_names
        classes += own.standalone_module_classes
        classes += get_custom_module_class_keys(own.float_to_observed_mapping)
    return names, classes
