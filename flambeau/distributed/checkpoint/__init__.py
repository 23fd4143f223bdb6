"""Checkpoints of several processes, under the names of `torch.distributed.checkpoint`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules(
        "api default_planner filesystem format_utils hf_storage staging state_dict state_dict_loader "
        "state_dict_saver stateful"
    )
    .elsewhere("save async_save", "distributed.checkpoint.state_dict_saver")
    .elsewhere("load", "distributed.checkpoint.state_dict_loader")
    .elsewhere("FileSystemReader FileSystemWriter", "distributed.checkpoint.filesystem")
    .elsewhere("DefaultLoadPlanner DefaultSavePlanner", "distributed.checkpoint.default_planner")
    .elsewhere("CheckpointException", "distributed.checkpoint._folder")
    .elsewhere("Stateful", "distributed.checkpoint.stateful")
    .elsewhere("HuggingFaceStorageReader HuggingFaceStorageWriter", "distributed.checkpoint.hf_storage")
    .elsewhere("save_state_dict", "distributed.checkpoint.state_dict_saver")
    .elsewhere("load_state_dict", "distributed.checkpoint.state_dict_loader")
    .absent("checkpoints are folders here", classes="StorageReader StorageWriter")
    .parts()
)
