"""Apple's GPUs, under the names of `torch.mps`: as in PyTorch elsewhere, there are none."""

from __future__ import annotations

from .._core.names.absent import Table

WITHOUT = "Cannot execute torch.mps.{name}() without MPS backend: this installation of Flambeau has none"

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("event profiler")
    .returning(lambda: 0, functions="device_count")
    .returning(lambda: False, functions="is_available")
    .returning(lambda: None, functions="manual_seed")
    .raising(
        RuntimeError,
        WITHOUT,
        functions="compile_shader current_allocated_memory driver_allocated_memory empty_cache get_rng_state "
        "load_metallib recommended_max_memory seed set_per_process_memory_fraction set_rng_state synchronize",
    )
    .elsewhere("Event", "mps.event")
    .parts()
)
