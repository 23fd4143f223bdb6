"""Putting observers into a graph."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch

from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn.modules.module import Module
from ..backend_config import BackendConfig, ObservationType
from ..backend_config.native import get_native_backend_config
from ..backend_config.utils import get_module_to_qat_module
from ..observer import _is_activation_post_process
from ..qconfig_mapping import QConfigMapping
from ..quantization_mappings import no_observer_set
from ..utils import get_swapped_custom_module_class
from ._support import supported
from .custom_config import PrepareCustomConfig, StandaloneModuleConfigEntry
from .fuse import modules_of
from .fuse_handler import set_module
from .match_utils import _find_matches
from .qconfig_mapping_utils import _generate_node_name_to_qconfig
from .quantize_handler import QuantizeHandler, handler_for
from .utils import (
    NON_QUANTIZABLE_WEIGHT_OPS,
    ObservedGraphModuleAttrs,
    all_node_args_have_no_tensors,
    get_custom_module_class_keys,
    get_new_attr_name_with_prefix,
    get_non_observable_arg_indexes_and_types,
    node_arg_is_bias,
    node_arg_is_weight,
)

__all__ = ["insert_observers_for_model", "prepare", "propagate_dtypes_for_known_nodes"]

Match = tuple[Node, list[Node], Any, QuantizeHandler, Any]
"""The last node of a pattern, all of them, the pattern, its handler and its configuration."""


class _Watcher:
    """Puts observers into one model."""

    def __init__(self, model: GraphModule, backend: BackendConfig) -> None:
        self.model, self.graph = model, model.graph
        self.modules = modules_of(model)
        self.taken_as_codes: set[Node] = set()
        self.without_tensors: dict[Node, bool] = {}
        self.places = {
            config.pattern: config._input_type_to_index for config in backend.configs if config._input_type_to_index
        }

    def observer_of(self, node: Any) -> Any:
        """The observer that a node calls, if it calls one."""
        if not isinstance(node, Node) or node.op != "call_module":
            return None
        module = self.modules[str(node.target)]
        return module if _is_activation_post_process(module) else None

    def insert(self, observer: Any, watched: Node) -> Node:
        """A node that lets an observer see what another node gives."""
        name = get_new_attr_name_with_prefix("activation_post_process_")(self.model)
        self.model.add_module(name, observer)
        self.modules[name] = observer
        with self.graph.inserting_after(watched):
            return self.graph.create_node("call_module", name, (watched,))

    def watched_input(self, arg: Any, observer: Any) -> Any:
        """An argument as an observer gives it: one that is there already, or this one."""
        wanted = (observer.dtype, getattr(observer, "is_dynamic", False))
        if arg in self.taken_as_codes:
            return arg
        for node in (arg, *arg.users):
            known = self.observer_of(node)
            if known is not None and (known.dtype, getattr(known, "is_dynamic", False)) == wanted:
                return node
        return self.insert(observer, arg)

    def watch_inputs(self, node: Node, qconfig: Any) -> None:
        """Let the tensors that a node gets be seen; weights by observers of weights."""
        indices = self.places.get(node.target, {}) if node.op == "call_function" else {}
        node.meta["target_dtype_info"] = {f"{kind}_index": index for kind, index in indices.items()}
        unseen = get_non_observable_arg_indexes_and_types(node).values()
        skipped = {index for positions in unseen for index in positions(node)}

        def watched(arg: Any) -> Any:
            if isinstance(arg, (list, tuple)):
                return type(arg)(map(watched, arg))
            if not isinstance(arg, Node) or all_node_args_have_no_tensors(arg, self.modules, self.without_tensors):
                return arg
            if node_arg_is_bias(node, arg):
                return arg
            weight = node_arg_is_weight(node, arg)
            if weight and node.target in NON_QUANTIZABLE_WEIGHT_OPS:
                return arg
            observer = (qconfig.weight if weight else qconfig.activation)()
            return arg if observer.dtype is torch.float32 else self.watched_input(arg, observer)

        node.args = tuple(arg if at in skipped else watched(arg) for at, arg in enumerate(node.args))
        if node.op == "call_function":  # of modules and methods the tensors stand first
            node.kwargs = {name: watched(arg) for name, arg in node.kwargs.items()}

    def watch_output(self, node: Node, observer: Any) -> Node:
        """Let what a node gives be seen before all others see it."""
        users = list(node.users)
        made = self.insert(observer, node)
        for user in users:
            user.replace_input_with(node, made)
        return made

    def share(self, first: Node, last: Node) -> None:
        """One observer for all that a pattern takes and gives, if all that it takes is seen."""
        arguments = first.args[0] if isinstance(first.args[0], (list, tuple)) else first.args
        inputs = [each for each in arguments if isinstance(each, Node)]
        seen = [each for each in inputs if not all_node_args_have_no_tensors(each, self.modules, self.without_tensors)]
        observers = [self.observer_of(each) for each in seen]
        if not seen or any(each is None for each in observers):
            self.taken_as_codes.add(last)
            return
        output = self.watch_output(last, observers[0])
        for node in (*seen, output):
            setattr(self.model, str(node.target), observers[0])
            self.modules[str(node.target)] = observers[0]


def insert_observers_for_model(
    model: GraphModule,
    node_name_to_match_result_with_qconfig: dict[str, Match],
    node_name_to_qconfig: dict[str, Any],
    prepare_custom_config: PrepareCustomConfig,
    equalization_config_map: dict[str, Any],
    backend_config: BackendConfig,
    observed_node_names: set[str],
    is_qat: bool,
) -> None:
    """Put observers before and after the patterns that the backend can quantize as they are configured."""
    watcher = _Watcher(model, backend_config)
    placeholders = [node for node in model.graph.nodes if node.op == "placeholder"]
    watcher.taken_as_codes = {placeholders[each] for each in prepare_custom_config.input_quantized_indexes}
    for node in list(model.graph.nodes):
        if node.name not in node_name_to_match_result_with_qconfig:
            continue
        last, nodes, _, handler, qconfig = node_name_to_match_result_with_qconfig[node.name]
        weighted = handler.root_node.op == "call_function" and handler.root_node.target in watcher.places
        by_user = handler.is_custom_module() or handler.is_standalone_module()
        if qconfig is None or not (by_user or supported(qconfig, handler.dtype_configs, weighted)):
            continue
        observed_node_names.add(node.name)
        if node is nodes[-1] and _observes(handler) and node_name_to_qconfig[node.name] is not None:
            watcher.watch_inputs(node, node_name_to_qconfig[node.name])
        if node is last and _observes(handler):
            _watch_result(watcher, nodes[-1], last, handler, qconfig)


def _observes(handler: QuantizeHandler) -> bool:
    """Whether there are observers around a pattern."""
    return (
        not handler.is_standalone_module() and handler.observation_type is not ObservationType.INPUT_OUTPUT_NOT_OBSERVED
    )


def _watch_result(watcher: _Watcher, first: Node, last: Node, handler: QuantizeHandler, qconfig: Any) -> None:
    """The observer after a pattern, if what it gives becomes codes of a scale that is found before."""
    activation = qconfig.activation()
    if activation.dtype is torch.float32 or getattr(activation, "is_dynamic", False):
        return
    if handler.is_general_tensor_value_op():
        watcher.share(first, last)
    else:
        watcher.watch_output(last, activation)


def propagate_dtypes_for_known_nodes(graph: Graph, node_name_to_match_result_with_qconfig: dict[str, Match]) -> None:
    """Note at the nodes that give sizes, masks and numbers of which type they are."""
    for node in graph.nodes:
        for kind, positions in get_non_observable_arg_indexes_and_types(node).items():
            for index in positions(node):
                pending = [node.args[index]]
                while pending:
                    each = pending.pop()
                    if isinstance(each, (list, tuple)):
                        pending += each
                    elif isinstance(each, Node):
                        each.meta.setdefault("target_dtype_info", {})["output_act_obs_or_fq_ctr"] = kind


def _swap_for_training(model: GraphModule, backend: BackendConfig, qconfigs: dict[str, Any]) -> None:
    """Put modules that round their weights in the place of those that are to be trained."""
    modules, classes = modules_of(model), get_module_to_qat_module(backend)
    for node in model.graph.nodes:
        kind = type(modules[str(node.target)]) if node.op == "call_module" else None
        if kind in classes and qconfigs[node.name] is not None:
            made: Any = classes[kind]
            set_module(modules, str(node.target), made.from_float(modules[str(node.target)]))


def _swap_custom(model: GraphModule, custom: PrepareCustomConfig, qconfigs: dict[str, Any]) -> dict[str, QuantizeHandler]:  # noqa: E501  # fmt: skip
    """Put users' classes in the place of modules that they observe themselves."""
    found: dict[str, QuantizeHandler] = {}
    modules, classes = modules_of(model), get_custom_module_class_keys(custom.float_to_observed_mapping)
    for node in model.graph.nodes:
        if node.op != "call_module" or type(modules[str(node.target)]) not in classes:
            continue
        module, qconfig = modules[str(node.target)], qconfigs[node.name]
        if qconfig is None:
            continue
        own: Any = get_swapped_custom_module_class(module, custom.float_to_observed_mapping, qconfig)
        if issubclass(own, tuple(no_observer_set())):
            raise NotImplementedError(f"{own.__name__} in graphs: its module gives several tensors of codes")
        found[node.name] = QuantizeHandler(node, modules, is_custom_module=True)
        set_module(modules, str(node.target), own.from_float(module))
    return found


def _prepare_standalone(
    model: GraphModule, custom: PrepareCustomConfig, mapping: QConfigMapping, is_qat: bool, backend: BackendConfig
) -> dict[str, QuantizeHandler]:
    """Prepare the modules that are quantized apart; they take and give floats."""
    from ..quantize_fx import _prepare_fx

    found: dict[str, QuantizeHandler] = {}
    modules = modules_of(model)
    for node in model.graph.nodes:
        module = modules[str(node.target)] if node.op == "call_module" else None
        entry: StandaloneModuleConfigEntry | None = None
        if module is not None:
            by_class = custom.standalone_module_classes.get(type(module))
            entry = custom.standalone_module_names.get(str(node.target), by_class)
        if entry is None:
            continue
        inner = entry.prepare_custom_config or PrepareCustomConfig()
        if inner.input_quantized_indexes or inner.output_quantized_indexes:
            raise NotImplementedError(f"{node.target}: a standalone module takes and gives floats")
        own = _prepare_fx(
            module, entry.qconfig_mapping or mapping, is_qat, entry.example_inputs, inner,
            backend_config=entry.backend_config or backend, is_standalone_module=True,
        )  # fmt: skip
        found[node.name] = QuantizeHandler(node, modules, is_standalone_module=True)
        set_module(modules, str(node.target), own)
    return found


def prepare(
    model: GraphModule,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    is_qat: bool,
    node_name_to_scope: dict[str, tuple[str, type]],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: Any = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
) -> GraphModule:
    """Put observers into a traced and fused model."""
    if _equalization_config:
        raise NotImplementedError("equalization between layers is not built")
    if isinstance(qconfig_mapping, dict):
        warnings.warn("Passing a QConfig dictionary to prepare is deprecated: pass a QConfigMapping", FutureWarning, stacklevel=4)  # noqa: E501  # fmt: skip
    mapping = QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) else qconfig_mapping
    custom = PrepareCustomConfig.from_dict(prepare_custom_config) if isinstance(prepare_custom_config, dict) else prepare_custom_config  # noqa: E501  # fmt: skip
    backend = BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config
    custom, backend = custom or PrepareCustomConfig(), backend or get_native_backend_config()
    modules: dict[str, Module] = modules_of(model)
    qconfigs = _generate_node_name_to_qconfig(model, modules, mapping, node_name_to_scope)
    by_user = _prepare_standalone(model, custom, mapping, is_qat, backend) | _swap_custom(model, custom, qconfigs)
    if is_qat:
        _swap_for_training(model, backend, qconfigs)
    modules = modules_of(model)
    patterns = {pattern: handler_for(config) for pattern, config in backend.by_nested_pattern.items()}
    matches: dict[str, Match] = {}
    for name, found in _find_matches(model.graph, modules, patterns).items():
        handler = found.handler(found.node_pattern, modules, found.handler.config._root_node_getter)
        matches[name] = (found.last, found.nodes, found.pattern, handler, qconfigs[found.last.name])
    for node in model.graph.nodes:
        if node.name in by_user:
            matches[node.name] = (node, [node], None, by_user[node.name], qconfigs[node.name])
    propagate_dtypes_for_known_nodes(model.graph, matches)
    observed: set[str] = set()
    insert_observers_for_model(model, matches, qconfigs, custom, {}, backend, observed, is_qat)
    made = GraphModule(model, model.graph)
    made.meta["_observed_graph_module_attrs"] = ObservedGraphModuleAttrs(
        qconfigs, node_name_to_scope, custom, {}, mapping, is_qat, observed, is_standalone_module,
        custom.input_quantized_indexes if is_standalone_module else None,
        custom.output_quantized_indexes if is_standalone_module else None,
    )  # fmt: skip
    return made
