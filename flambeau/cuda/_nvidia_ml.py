"""What NVIDIA's management library says of a device: how busy it is, how warm, who uses it (package nvidia-ml-py)."""

from __future__ import annotations

import importlib
from typing import Any

from .._core.text.inherited_docs import documented_like
from ._ordinals import index_of


def _library() -> Any:
    try:
        found = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported: pip install nvidia-ml-py"
        ) from None
    found.nvmlInit()
    return found


def _handle(device: Any) -> tuple[Any, Any]:
    index = index_of(device)
    library = _library()
    return library, library.nvmlDeviceGetHandleByIndex(index)


def utilization(device: Any = None) -> int:
    """The percentage of time in which kernels were running.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the percentage.
    """
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


@documented_like(utilization)
def memory_usage(device: Any = None) -> int:
    """The percentage of time in which the memory was read or written."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def device_memory_used(device: Any = None) -> int:
    """The bytes that all processes use of the device.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the number of bytes.
    """
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetMemoryInfo(handle).used)


def temperature(device: Any = None) -> int:
    """The temperature of the device, in degrees Celsius.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the temperature.
    """
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetTemperature(handle, 0))


def power_draw(device: Any = None) -> int:
    """The power that the device draws, in milliwatts.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the power.
    """
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """The clock of the processors, in MHz.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the rate.
    """
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetClockInfo(handle, 1))


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use the device, and how much of its memory.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        str: a table.
    """
    try:
        library, handle = _handle(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    found = library.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"process {each.pid:>10d} uses {each.usedGpuMemory / 2**20:>12.3f} MB GPU memory" for each in found]
    return "\n".join(["GPU:0", *(lines or ["no processes are running"])])
