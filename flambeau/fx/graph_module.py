"""`torch.fx.graph_module`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("GraphModule", "fx")
    .absent(
        "graph capture (fx) is not built yet",
        functions="_copy_attr _assign_attr _del_attr _has_attr _get_attr reduce_graph_module",
        classes="_CodeOnlyModule",
    )
    .parts()
)

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
