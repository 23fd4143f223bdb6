"""Names of PyTorch's compiled module for calls between processes: this part is not built."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed: this part is not built",
        functions="_is_current_rpc_agent_set _get_current_rpc_agent",
        classes="ProcessGroup Work Store",
    )
    .parts()
)
