"""Several processes that work together, under the names of `torch.distributed`.

    flambeau.distributed.init_process_group()
    x = flambeau.ones(2) * flambeau.distributed.get_rank()
    flambeau.distributed.all_reduce(x)

`flambeau launch program.py` starts the processes; docs/distributed.md shows more.
"""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules(
        "algorithms checkpoint collective_utils config constants device_mesh distributed_c10d elastic fsdp launcher nn "
        "optim pipelining rpc run"
    )
    .submodules("profiling tensor testing utils _composable _functional_collectives _tensor")
    .elsewhere("ReduceOp reduce_op", "distributed.reductions")
    .elsewhere("Store HashStore FileStore PrefixStore", "distributed.stores")
    .elsewhere("TCPStore", "distributed.tcp_store")
    .elsewhere("DistBackendError DistError DistNetworkError DistStoreError", "distributed._errors")
    .elsewhere("rendezvous register_rendezvous_handler", "distributed._rendezvous")
    .elsewhere("DebugLevel breakpoint get_debug_level set_debug_level set_debug_level_from_env", "distributed._debug")
    .elsewhere("Work", "distributed._work")
    .elsewhere(
        "Backend GroupMember ProcessGroup group init_process_group destroy_process_group is_initialized new_group "
        "new_subgroups new_subgroups_by_enumeration split_group get_rank get_world_size get_backend "
        "get_backend_config get_default_backend_for_device get_global_rank get_group_rank get_process_group_ranks "
        "get_node_local_rank get_pg_count",
        "distributed._world",
    )
    .elsewhere(
        "all_reduce all_reduce_coalesced reduce broadcast all_gather all_gather_into_tensor all_gather_coalesced "
        "gather scatter reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single barrier monitored_barrier "
        "supports_complex is_torchelastic_launched all_gather_single reduce_scatter_single",
        "distributed._calls",
    )
    .elsewhere("P2POp batch_isend_irecv isend irecv send recv _coalescing_manager", "distributed._points")
    .elsewhere(
        "all_gather_object broadcast_object_list gather_object recv_object_list scatter_object_list send_object_list",
        "distributed._objects",
    )
    .elsewhere(
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions "
        "ReduceOptions ReduceScatterOptions ScatterOptions",
        "distributed._options",
    )
    .elsewhere("DeviceMesh init_device_mesh", "distributed.device_mesh")
    .returning(lambda: False, functions="is_ucc_available is_xccl_available")
    .absent("its work is done by DistributedDataParallel itself", classes="GradBucket Logger Reducer")
    .parts()
)


def is_available() -> bool:
    """Whether several processes can work together.

    Returns:
        bool: True.

    Example:
        >>> dist.is_available()
        True
    """
    return True


def is_nccl_available() -> bool:
    """Whether 'nccl', the backend for GPUs, finds its library.

    Returns:
        bool: whether it does.

    Example:
        >>> isinstance(dist.is_nccl_available(), bool)
        True
    """
    from ._nccl.library import library

    return library() is not None


def is_gloo_available() -> bool:
    """Whether 'gloo' may be asked for, the name under which programs ask for collectives on the CPU.

    Returns:
        bool: True.

    Example:
        >>> dist.is_gloo_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Whether 'mpi' may be asked for: mpi4py is installed, and `mpiexec` started this process.

    MPI joins no other processes: each would be alone, and libraries that prefer MPI would train it alone.

    Returns:
        bool: whether it may.

    Example:
        >>> isinstance(dist.is_mpi_available(), bool)
        True
    """
    from importlib.util import find_spec

    from ._rendezvous import started_by_mpi

    return started_by_mpi() and find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend may be asked for.

    Args:
        backend (str): its name.

    Returns:
        bool: whether it may.

    Example:
        >>> dist.is_backend_available("gloo")
        True
    """
    return {"gloo": True, "mpi": is_mpi_available()}.get(backend.lower(), False)
