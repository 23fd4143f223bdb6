"""The accelerator in use, under the names of `torch.accelerator`: a CUDA device, or none."""

from __future__ import annotations

from .._core.names.absent import Table
from ..cuda._missing import where_present

NONE_AVAILABLE = (
    "Cannot access accelerator device when none is available: torch.accelerator.{name} needs one, and this "
    "installation of Flambeau has none"
)

__getattr__, __dir__ = where_present(
    "_accelerator",
    Table(__name__)
    .submodules("graphs memory")
    .returning(lambda: None, functions="current_accelerator")
    .returning(lambda: 0, functions="device_count")
    .returning(lambda: False, functions="is_available")
    .raising(
        RuntimeError,
        NONE_AVAILABLE,
        functions="current_device_idx current_device_index get_device_capability current_stream set_device_idx "
        "set_device_index set_stream synchronize",
        classes="device_index",
    )
    .elsewhere("Graph", "accelerator.graphs")
    .elsewhere(
        "empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved memory_allocated "
        "memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
        "accelerator.memory",
    ),
)
