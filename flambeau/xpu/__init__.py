"""Intel's GPUs, under the names of `torch.xpu`: as in PyTorch's build for the CPU, there are none."""

from __future__ import annotations

from .._core.names.absent import Table

NOT_COMPILED = "Torch not compiled with XPU enabled: torch.xpu.{name} needs such a device, and Flambeau has none"

default_generators: tuple[object, ...] = ()

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("graphs memory random streams")
    .returning(lambda: 0, functions="device_count")
    .returning(lambda: False, functions="is_available is_bf16_supported is_initialized is_tf32_supported")
    .returning(list, functions="get_arch_list")
    .returning(lambda: "", functions="get_gencode_flags")
    .returning(lambda: None, functions="set_stream")
    .raising(
        AssertionError,
        NOT_COMPILED,
        functions="can_device_access_peer current_device current_stream get_device_capability get_device_name stream "
        "get_device_properties get_stream_from_external init set_device synchronize",
        classes="StreamContext device device_of",
    )
    .raising(
        ImportError,
        "torch.xpu.{name} needs a package for Intel's GPUs, and Flambeau runs on none",
        functions="clock_rate device_memory_used memory_usage power_draw temperature utilization",
    )
    .elsewhere("Event Stream", "xpu.streams")
    .elsewhere(
        "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state "
        "set_rng_state_all",
        "xpu.random",
    )
    .elsewhere("XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables", "xpu.graphs")
    .elsewhere(
        "MemPool XPUPluggableAllocator change_current_allocator empty_cache get_per_process_memory_fraction "
        "max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved memory_snapshot "
        "memory_stats memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats "
        "set_per_process_memory_fraction use_mem_pool",
        "xpu.memory",
    )
    .parts()
)
