"""Several processes, under the names of `torch.distributed`: not built yet.

As in a build of PyTorch without it, `is_available()` is False, and programs that ask do without.
"""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules(
        "algorithms checkpoint constants device_mesh distributed_c10d elastic fsdp launcher nn optim pipelining rpc run"
    )
    .submodules("tensor utils _composable _functional_collectives _tensor")
    .elsewhere("ReduceOp reduce_op", "distributed._kinds")
    .returning(
        lambda: False,
        functions="is_available is_initialized is_gloo_available is_mpi_available is_nccl_available is_ucc_available "
        "is_xccl_available is_torchelastic_launched is_backend_available",
    )
    .absent(
        "distributed is not built yet",
        functions="all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier "
        "batch_isend_irecv broadcast broadcast_object_list destroy_process_group gather gather_object get_backend "
        "get_default_backend_for_device get_global_rank get_group_rank get_process_group_ranks get_rank "
        "get_world_size init_device_mesh init_process_group irecv isend monitored_barrier new_group new_subgroups "
        "recv recv_object_list reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send "
        "send_object_list all_gather_coalesced all_reduce_coalesced get_node_local_rank supports_complex "
        "new_subgroups_by_enumeration split_group",
        classes="Backend DeviceMesh FileStore GroupMember HashStore P2POp PrefixStore ProcessGroup Store "
        "TCPStore Work DistBackendError DistError DistNetworkError DistStoreError GradBucket Logger Reducer group",
    )
    .parts()
)
