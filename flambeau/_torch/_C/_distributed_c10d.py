"""Several processes, under their compiled module's name."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "DebugLevel FileStore HashStore PrefixStore ProcessGroup ReduceOp Store TCPStore Work get_debug_level "
        "set_debug_level",
        "distributed",
    )
    .elsewhere("_resolve_process_group", "distributed.distributed_c10d")
    .absent("groups are registered when they are made", functions="_register_process_group")
    .parts()
)
