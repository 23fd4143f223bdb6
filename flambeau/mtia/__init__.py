"""MTIA devices, under the names of `torch.mtia`: as in PyTorch without their package, there are none."""

from __future__ import annotations

from .._core.names.absent import Table

WITHOUT = "Cannot execute torch.mtia.{name}() without MTIA backend: this installation of Flambeau has none"

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("memory mtia_graph")
    .returning(lambda: 0, functions="device_count")
    .returning(lambda: False, functions="is_available is_initialized")
    .returning(lambda: True, functions="is_bf16_supported")
    .returning(list, functions="get_rng_state_all")
    .returning(
        lambda: None,
        functions="manual_seed manual_seed_all record_memory_history seed seed_all set_rng_state_all set_stream",
    )
    .raising(
        AssertionError,
        "Torch not compiled with MTIA enabled: torch.mtia.{name} needs such a device",
        functions="get_rng_state init initial_seed",
    )
    .raising(
        RuntimeError,
        WITHOUT,
        functions="attach_out_of_memory_observer current_device current_stream default_stream empty_cache "
        "get_device_capability get_device_properties set_device set_rng_state snapshot stream synchronize",
        classes="device",
    )
    .elsewhere("max_memory_allocated memory_allocated memory_stats reset_peak_memory_stats", "mtia.memory")
    .elsewhere("MTIAGraph graph graph_pool_handle", "mtia.mtia_graph")
    .parts()
)
