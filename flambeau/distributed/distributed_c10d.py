"""The file of most functions of `torch.distributed` in PyTorch."""

from __future__ import annotations

from typing import Any

from .._core.names.absent import Table
from ._objects import _numbers, _packed, _unpacked
from ._world import ProcessGroup, default_group, group_of, is_member, world

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "all_gather all_gather_into_tensor all_gather_object all_gather_coalesced all_reduce all_reduce_coalesced "
        "all_to_all all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list destroy_process_group "
        "gather gather_object get_backend get_backend_config get_default_backend_for_device get_global_rank "
        "get_group_rank get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size "
        "init_process_group irecv is_backend_available is_gloo_available is_initialized is_mpi_available "
        "is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available isend monitored_barrier "
        "new_group new_subgroups new_subgroups_by_enumeration recv recv_object_list reduce reduce_scatter "
        "reduce_scatter_tensor scatter scatter_object_list send send_object_list split_group supports_complex "
        "all_gather_single reduce_scatter_single "
        "rendezvous",
        "distributed",
    )
    .elsewhere(
        "Backend GroupMember P2POp PrefixStore ReduceOp Store TCPStore FileStore HashStore Work DebugLevel "
        "get_debug_level group reduce_op",
        "distributed",
    )
    .elsewhere("DistBackendError DistError DistNetworkError DistStoreError", "distributed")
    .elsewhere(
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions "
        "ReduceOptions ReduceScatterOptions ScatterOptions",
        "distributed._options",
    )
    .elsewhere("default_pg_nccl_timeout default_pg_timeout", "distributed.constants")
    .elsewhere("_coalescing_manager _CoalescingManager", "distributed._points")
    .elsewhere("BackendConfig GroupName shrink_group", "distributed._backend_config")
    .parts()
)


def _get_default_group() -> ProcessGroup:
    return default_group()


def _get_default_store() -> Any:
    default_group()
    return world().store


def _get_pg_default_device(group: ProcessGroup | None = None) -> Any:
    from .._core.device import CPU

    group_of(group)
    return CPU


_get_object_coll_device = _get_pg_default_device


def _rank_not_in_group(group: ProcessGroup | None) -> bool:
    return not is_member(group)


def _get_group_size(group: ProcessGroup | None) -> int:
    return group_of(group).size()


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group with a name."""
    found = world().groups.get(str(group_name))
    if found is None:
        raise RuntimeError(f"there is no process group called {group_name!r}")
    return found


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    """A group with these members."""
    return next((each for each in world().groups.values() if each._ranks == list(ranks)), None)


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Any, Any]:
    data = _packed(obj)
    return data, _numbers([data.numel()])


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any = None) -> Any:
    return _unpacked(tensor.reshape(-1)[: int(tensor_size)])
