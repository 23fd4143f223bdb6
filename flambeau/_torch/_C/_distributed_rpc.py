"""Several processes, under their compiled module's name: not built yet."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="_is_current_rpc_agent_set _get_current_rpc_agent",
        classes="ProcessGroup Work Store",
    )
    .parts()
)
