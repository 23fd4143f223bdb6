"""`torch.fx.experimental`: operators as a graph, and changes of graphs."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).submodules("const_fold merge_matmul optimization proxy_tensor sym_node symbolic_shapes").parts()
)
