"""`torch.accelerator` where there is a CUDA device."""

from __future__ import annotations

from typing import Any

from .._backends.cuda.runtime.driver import driver
from .._core.device import device as Device
from .._core.device import usable_device
from .._core.dtype import NAMES
from . import current_device, device_count, is_available
from . import device as device_index
from ._device import set_device as set_device_index
from ._device import synchronize
from ._graphs import CUDAGraph
from ._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from ._memory import mem_get_info as get_memory_info
from ._streams import current_stream, set_stream

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
    "synchronize",
]  # fmt: skip

current_device_index = current_device_idx = current_device
set_device_idx = set_device_index


def current_accelerator(check_available: bool = False) -> Device:
    """The kind of accelerator that there is.

    Args:
        check_available (bool): whether to look for a device, and to return None where there is none. Default: `False`.

    Returns:
        Device: its device, without an ordinal.
    """
    return Device("cuda")


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device can compute with.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        what it supports, such as dtypes, by name.
    """
    usable_device("cuda")
    return {"supported_dtypes": {each for each in NAMES.values() if not each.name.startswith(("q", "bits"))}}


def empty_host_cache() -> None:
    """Give back page-locked memory that nobody needs."""
    usable_device("cuda")
    driver().host_pool.give_back()


class Graph(CUDAGraph):
    """Captured work of the accelerator; a context that captures, too."""

    def __init__(
        self, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default"
    ) -> None:
        super().__init__(keep_graph)
        self._shared, self._mode = pool, "global" if capture_error_mode == "default" else capture_error_mode
        self._context: Any = None

    def __enter__(self) -> Graph:
        from ._graphs import graph

        self._context = graph(self, self._shared, capture_error_mode=self._mode)
        self._context.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)
