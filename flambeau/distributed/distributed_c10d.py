"""The file of most functions of `torch.distributed` in PyTorch."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all barrier "
        "broadcast broadcast_object_list destroy_process_group gather",
        "distributed",
    )
    .elsewhere(
        "get_backend get_global_rank get_process_group_ranks get_rank get_world_size "
        "init_process_group is_initialized new_group reduce scatter send recv",
        "distributed",
    )
    .elsewhere("Backend GroupMember P2POp PrefixStore ProcessGroup ReduceOp Store TCPStore Work group", "distributed")
    .absent(
        "distributed is not built yet",
        functions="_get_default_group _get_pg_default_device _find_pg_by_ranks_and_tag",
    )
    .parts()
)
