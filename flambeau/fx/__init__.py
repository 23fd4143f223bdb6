"""Programs as graphs that can be read and changed, under the names of `torch.fx`.

`symbolic_trace` runs a module once with proxies in place of values; what it does becomes a `Graph`, and that a
`GraphModule` with readable code.
"""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("PH PHWithMeta ProxyableClassMeta Tracer symbolic_trace wrap", "fx._symbolic_trace")
    .elsewhere("CodeGen Graph", "fx.graph")
    .elsewhere("GraphModule", "fx.graph_module")
    .elsewhere("Interpreter Transformer", "fx.interpreter")
    .elsewhere("Node has_side_effect map_arg", "fx.node")
    .elsewhere("Proxy", "fx.proxy")
    .elsewhere("replace_pattern", "fx.subgraph_rewriter")
    .submodules(
        "annotate experimental graph graph_module immutable_collections interpreter node operator_schemas passes proxy "
        "subgraph_rewriter tensor_type traceback _symbolic_trace _lazy_graph_module _pytree"
    )
    .parts()
)
