"""Passes over graphs, under the names of `torch.fx.passes`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("fake_tensor_prop graph_drawer infra operator_support shape_prop split_module tools_common utils")
    .parts()
)
