"""The launcher of processes, under the names of `torch.distributed.run`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="main run get_args_parser parse_args config_from_args determine_local_world_size run_script_path",
    )
    .parts()
)
