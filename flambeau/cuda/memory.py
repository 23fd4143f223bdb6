"""The memory of CUDA devices."""

from __future__ import annotations

import contextlib
from collections import OrderedDict

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, NOT_COMPILED, where_present

__getattr__, __dir__ = where_present(
    "_memory _nvidia_ml",
    Table(__name__)
    .returning(
        lambda: 0,
        functions="max_memory_allocated max_memory_cached max_memory_reserved memory_allocated memory_cached "
        "memory_reserved",
    )
    .returning(lambda: None, functions="_set_allocator_settings caching_allocator_enable empty_cache")
    .returning(contextlib.nullcontext, functions="caching_allocator_disabled")
    .returning(OrderedDict, functions="host_memory_stats memory_stats")
    .returning(dict, functions="host_memory_stats_as_nested_dict memory_stats_as_nested_dict")
    .returning(lambda: "pynvml module not found, please install nvidia-ml-py", functions="list_gpu_processes")
    .raising(
        AssertionError,
        NOT_COMPILED,
        functions="caching_allocator_alloc get_per_process_memory_fraction mem_get_info "
        "set_per_process_memory_fraction",
    )
    .raising(
        AttributeError,
        NEEDS_CUDA,
        functions="caching_allocator_delete change_current_allocator get_allocator_backend memory_snapshot "
        "reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated "
        "reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats",
    )
    .raising(RuntimeError, NEEDS_CUDA, functions="_dump_snapshot _record_memory_history _snapshot")
    .raising(KeyError, NEEDS_CUDA, functions="memory_summary")
    .raising(RuntimeError, NEEDS_CUDA, functions="use_mem_pool", classes="CUDAPluggableAllocator MemPool"),
)
