"""The memory of Intel's GPUs: there are none."""

from __future__ import annotations

from collections import OrderedDict

from .._core.names.absent import Table
from . import NOT_COMPILED

__getattr__, __dir__ = (
    Table(__name__)
    .returning(lambda: 0, functions="max_memory_allocated max_memory_reserved memory_allocated memory_reserved")
    .returning(list, functions="memory_snapshot")
    .returning(OrderedDict, functions="memory_stats")
    .returning(dict, functions="memory_stats_as_nested_dict")
    .returning(lambda: None, functions="empty_cache")
    .raising(
        AssertionError,
        NOT_COMPILED,
        functions="get_per_process_memory_fraction mem_get_info set_per_process_memory_fraction",
    )
    .raising(
        AttributeError,
        "torch.xpu.{name} needs an Intel GPU, and this installation of Flambeau has none",
        functions="change_current_allocator reset_accumulated_memory_stats reset_peak_memory_stats",
    )
    .raising(
        RuntimeError,
        "torch.xpu.{name} needs an Intel GPU, and this installation of Flambeau has none",
        functions="use_mem_pool",
        classes="MemPool XPUPluggableAllocator",
    )
    .parts()
)
