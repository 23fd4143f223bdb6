"""Checkpoints of several processes, under the names of `torch.distributed.checkpoint`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("state_dict format_utils")
    .absent(
        "distributed is not built yet",
        functions="load save async_save load_state_dict save_state_dict",
        classes="FileSystemReader FileSystemWriter StorageReader StorageWriter DefaultLoadPlanner DefaultSavePlanner",
    )
    .parts()
)
