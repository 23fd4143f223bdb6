"""What several passes share, under the names of `torch.fx.passes.utils`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("HolderModule compare_graphs lift_subgraph_as_module", "fx.passes.utils.common")
    .submodules("common fuser_utils matcher_utils matcher_with_name_node_map_utils source_matcher_utils")
    .parts()
)
