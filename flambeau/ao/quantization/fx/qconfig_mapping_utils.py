"""Which configuration each node of a graph has."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn.modules.module import Module
from ...nn.intrinsic.modules.fused import _FusedModule
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping

__all__: list[str] = []


def _by_type(mapping: QConfigMapping, module: Module, default: Any) -> Any:
    """The configuration of a module's class; one that was fused has that of its parts, which must agree."""
    own = mapping.object_type_qconfigs
    if not isinstance(module, _FusedModule) or type(module) in own:
        return own.get(type(module), default)
    parts = [type(each) for each in module.children()]
    first = own.get(parts[0])
    if not all(qconfig_equals(own.get(each), first) for each in parts):
        raise LookupError(f"During fusion, we need to specify the same qconfigs for all module types in {type(module)}")
    return default if first is None else first


def _by_name(mapping: QConfigMapping, name: str, default: Any) -> Any:
    """The configuration of a module's name or of what holds it, or of a pattern that fits the name."""
    for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, name):
            default = qconfig
            break
    own = mapping.module_name_qconfigs
    while name not in own and name:
        name = name.rpartition(".")[0]
    return own.get(name, default) if name else default


def _of_module(mapping: QConfigMapping, module: Module, name: str, default: Any) -> Any:
    return _by_name(mapping, name, _by_type(mapping, module, default))


def _generate_node_name_to_qconfig(
    model: GraphModule, modules: dict[str, Module], mapping: QConfigMapping, scopes: dict[str, tuple[str, type]]
) -> dict[str, Any]:
    """The configuration of each node, by its name."""
    found: dict[str, Any] = {}
    seen: Counter[tuple[str, Any]] = Counter()
    ordered = mapping.module_name_object_type_order_qconfigs

    def at_position(path: str, kind: Any, default: Any) -> Any:
        number = seen[path, kind]
        seen[path, kind] += 1
        return ordered.get((path, kind, number), default)

    for node in model.graph.nodes:
        found[node.name] = None
        path, holder = _scope(node, modules, scopes)
        if node.op == "get_attr":
            found[node.name] = _of_module(mapping, holder, path, mapping.global_qconfig)
        elif node.op == "call_function":
            own = mapping.object_type_qconfigs.get(node.target, mapping.global_qconfig)
            found[node.name] = at_position(path, node.target, _of_module(mapping, holder, path, own))
        elif node.op == "call_method":
            own = _of_module(mapping, holder, path, mapping.global_qconfig)
            found[node.name] = mapping.object_type_qconfigs.get(node.target, own)
        elif node.op == "call_module":
            module, name = modules[str(node.target)], str(node.target)
            parent = name.rpartition(".")[0]
            own = _of_module(mapping, modules[parent], parent, mapping.global_qconfig)
            own = _of_module(mapping, module, name, own)
            found[node.name] = at_position(parent, type(module), own)
            module.qconfig = found[node.name]
    return found


def _scope(node: Node, modules: dict[str, Module], scopes: dict[str, tuple[str, type]]) -> tuple[str, Module]:
    """The path of the module that a node stands in, and the module."""
    path = scopes.get(node.name, ("", None))[0]
    return (path, modules[path]) if path in modules else ("", modules[""])
