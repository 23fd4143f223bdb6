"""A CUDA device: what it is, and waiting for it."""

from __future__ import annotations

from typing import Any

from .._backends.cuda.driver import driver
from .._core.backend import is_installed
from .._core.device import usable_device
from ._streams import current_stream, default_stream, set_stream


def _library() -> Any:
    usable_device("cuda")
    import cupy

    return cupy.cuda


def init() -> None:
    """Start the device; otherwise its first use does."""
    usable_device("cuda")


_lazy_init = init


def is_initialized() -> bool:
    """Whether the device is in use."""
    return is_installed("cuda")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with."""
    return True


def is_tf32_supported() -> bool:
    """Whether the device has the shorter float32 products."""
    return get_device_capability()[0] >= 8


def _is_compiled() -> bool:
    return True


def set_device(device: Any) -> None:
    """Let a device be the one in use."""
    usable_device(device if not isinstance(device, int) else f"cuda:{device}")


def synchronize(device: Any = None) -> None:
    """Wait for everything that the device was given to do; what kernels found wrong is raised here."""
    usable_device("cuda")
    driver().synchronize()


class _DeviceProperties:
    """What a device is."""

    def __init__(self, found: dict[str, Any]) -> None:
        name = found["name"]
        self.name: str = name.decode() if isinstance(name, bytes) else name
        self.major: int = found["major"]
        self.minor: int = found["minor"]
        self.total_memory: int = found["totalGlobalMem"]
        self.multi_processor_count: int = found["multiProcessorCount"]
        self.max_threads_per_multi_processor: int = found["maxThreadsPerMultiProcessor"]
        self.max_threads_per_block: int = found["maxThreadsPerBlock"]
        self.warp_size: int = found["warpSize"]
        self.L2_cache_size: int = found["l2CacheSize"]
        self.shared_memory_per_block: int = found["sharedMemPerBlock"]
        self.regs_per_multiprocessor: int = found["regsPerMultiprocessor"]
        self.is_integrated: int = found["integrated"]
        self.pci_bus_id: int = found["pciBusID"]
        self.pci_device_id: int = found["pciDeviceID"]
        self.pci_domain_id: int = found["pciDomainID"]

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """What a device is: its name, its memory, its processors."""
    return _DeviceProperties(_library().runtime.getDeviceProperties(0))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The generation of a device."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """The generations that kernels are made for: they are compiled for the device that is there."""
    major, minor = get_device_capability()
    return [f"sm_{major}{minor}"]


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device reads another one's memory; there is one."""
    return False


def ipc_collect() -> None:
    """Free what other processes have given back; nothing is shared with any."""


__all__ = [
    "can_device_access_peer", "current_stream", "default_stream", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "init", "ipc_collect", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "set_device", "set_stream", "synchronize",
]  # fmt: skip
