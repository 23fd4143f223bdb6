"""Quantizing a model as a graph: `prepare_fx`, let it see data, `convert_fx`.

    prepared = prepare_fx(model.eval(), get_default_qconfig_mapping("x86"), (example,))
    for batch in data:
        prepared(batch)
    quantized = convert_fx(prepared)

`prepare_qat_fx` is for a model that is trained before it is converted.
"""

from __future__ import annotations

import copy
from typing import Any

from ...fx.graph_module import GraphModule
from ...nn.modules.module import Module
from .backend_config import BackendConfig
from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse
from .fx.prepare import prepare
from .fx.tracer import QuantizationTracer
from .fx.utils import get_skipped_module_name_and_classes
from .qconfig_mapping import QConfigMapping

_KEPT = "_user_preserved_attributes"


def attach_preserved_attrs_to_model(model: GraphModule, preserved_attrs: dict[str, Any]) -> None:
    """Give a graph the attributes that its model is to keep."""
    model.meta[_KEPT] = copy.copy(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def _preserved(model: Any, names: list[str]) -> dict[str, Any]:
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _check_is_graph_module(model: Any) -> None:
    if not isinstance(model, GraphModule):
        raise ValueError(
            "input model must be a GraphModule, Got type:" + str(type(model)) + " Please make sure to follow the "
            "tutorials."
        )


def _traced(model: Any, custom: PrepareCustomConfig, is_standalone_module: bool) -> tuple[GraphModule, dict[str, Any]]:
    """The model as a graph, and in which module each node stands."""
    tracer = QuantizationTracer(*get_skipped_module_name_and_classes(custom, is_standalone_module))
    graph = GraphModule(model, tracer.trace(model))
    scopes = {name: (scope[0], scope[1]) for name, scope in tracer.node_name_to_scope.items()}
    return graph, scopes


def _prepare_fx(
    model: Any,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    is_qat: bool,
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: Any = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
) -> GraphModule:
    given = prepare_custom_config
    custom = PrepareCustomConfig.from_dict(given) if isinstance(given, dict) else given or PrepareCustomConfig()
    kept = _preserved(model, custom.preserved_attributes)
    traced, scopes = _traced(model, custom, is_standalone_module)
    fused = fuse(traced, is_qat, FuseCustomConfig(), backend_config)
    made = prepare(
        fused, qconfig_mapping, is_qat, scopes, example_inputs, custom, _equalization_config, backend_config,
        is_standalone_module,
    )  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made


def fuse_fx(
    model: Module,
    fuse_custom_config: FuseCustomConfig | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A trained model as a graph, in which neighbouring modules that the backend fuses are one."""
    given = fuse_custom_config
    custom = FuseCustomConfig.from_dict(given) if isinstance(given, dict) else given or FuseCustomConfig()
    kept = _preserved(model, custom.preserved_attributes)
    traced, _ = _traced(model, PrepareCustomConfig(), False)
    made = fuse(traced, model.training, custom, backend_config)
    attach_preserved_attrs_to_model(made, kept)
    return made


def prepare_fx(
    model: Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A trained model as a graph with observers."""
    return _prepare_fx(
        model, qconfig_mapping, False, example_inputs, prepare_custom_config, _equalization_config, backend_config
    )


def prepare_qat_fx(
    model: Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A model that is to be trained as a graph that rounds as its codes will."""
    return _prepare_fx(model, qconfig_mapping, True, example_inputs, prepare_custom_config, None, backend_config)


def _convert_fx(
    graph_module: GraphModule,
    is_reference: bool,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None,
    remove_qconfig: bool,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None,
    backend_config: BackendConfig | dict[str, Any] | None,
    keep_original_weights: bool = False,
) -> GraphModule:
    _check_is_graph_module(graph_module)
    given = convert_custom_config
    custom = ConvertCustomConfig.from_dict(given) if isinstance(given, dict) else given or ConvertCustomConfig()
    kept = _preserved(graph_module, custom.preserved_attributes)
    made = convert(
        graph_module, is_reference, custom, _remove_qconfig_flag=remove_qconfig, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config, keep_original_weights=keep_original_weights,
    )  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made


def convert_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    keep_original_weights: bool = False,
) -> GraphModule:
    """The graph of codes for one that was prepared and has seen data."""
    return _convert_fx(
        graph_module, False, convert_custom_config, _remove_qconfig, qconfig_mapping, backend_config,
        keep_original_weights,
    )  # fmt: skip


def convert_to_reference_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """The graph that computes in floats as the one of codes will, for a compiler that has its own kernels."""
    return _convert_fx(graph_module, True, convert_custom_config, _remove_qconfig, qconfig_mapping, backend_config)
