"""Passes over graphs, under the names of `torch.fx.passes`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules(
        "annotate_getitem_nodes dialect fake_tensor_prop graph_drawer graph_manipulation infra operator_support "
        "pass_manager shape_prop split_module split_utils tools_common utils"
    )
    .parts()
)
