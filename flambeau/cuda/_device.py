"""A CUDA device: what it is, and waiting for it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from .._backends.cuda.memory.interprocess import collect
from .._backends.cuda.runtime.detection import count, in_bad_fork
from .._backends.cuda.runtime.devices import use_ordinal
from .._backends.cuda.runtime.driver import driver
from .._backends.cuda.runtime.synchronization import SYNCHRONIZATIONS
from .._core.backend import is_installed
from .._core.device import usable_device
from .._core.random.philox import generator_of
from ._ordinals import driver_of, index_of, on
from ._streams import current_stream, default_stream, get_stream_from_external, set_stream

__all__ = [
    "can_device_access_peer", "check_error", "cudart", "current_blas_handle", "current_solver_handle",
    "current_stream", "default_generators", "default_stream", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "get_gencode_flags", "get_stream_from_external",
    "get_sync_debug_mode", "init", "ipc_collect", "is_bf16_supported", "is_initialized", "is_tf32_supported",
    "set_device", "set_stream", "set_sync_debug_mode", "synchronize",
]  # fmt: skip

default_generators = tuple(map(generator_of, range(count())))


def _library() -> Any:
    usable_device("cuda")
    return driver().library


def init() -> None:
    """Start the device; otherwise its first use does.

    Example:
        >>> torch.cuda.init()
    """
    usable_device("cuda")


_lazy_init = init


def is_initialized() -> bool:
    """Whether the device is in use.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.cuda.init()
        >>> torch.cuda.is_initialized()
        True
    """
    return is_installed("cuda")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with; by the device itself, without emulation.

    Args:
        including_emulation (bool): whether it may be emulated. Default: `True`.

    Returns:
        bool: whether it can.

    Example:
        >>> torch.cuda.is_bf16_supported()
        True
    """
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Whether the device has the shorter float32 products.

    Returns:
        bool: whether it has.
    """
    return get_device_capability()[0] >= 8


def _is_in_bad_fork() -> bool:
    return in_bad_fork()


def _is_compiled() -> bool:
    return True


def set_device(device: Any) -> None:
    """Let a device be the one in use; a negative ordinal changes nothing.

    Args:
        device: the device or its ordinal.

    Example:
        >>> torch.cuda.set_device(0)
    """
    if not (isinstance(device, int) and device < 0):
        use_ordinal(index_of(device))


def synchronize(device: Any = None) -> None:
    """Wait for everything that the device was given to do; what kernels found wrong is raised here.

    Args:
        device: the device or its ordinal; None means the one in use.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.synchronize()
    """
    with on(device):
        driver().synchronize()


_SLEEP = """
struct Arguments { long long cycles; };
extern "C" __global__ void kernel(const __grid_constant__ Arguments a) {
  const long long begin = clock64();
  while (clock64() - begin < a.cycles) {}
}
"""


@cache
def _sleeper() -> Callable[..., None]:
    return driver().compile(_SLEEP)


def _sleep(cycles: int) -> None:
    """Keep the queue in use busy for so many ticks of the device's clock: for tests."""
    usable_device("cuda")
    _sleeper()(1, 1, struct.pack("=q", cycles))


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens when an operation makes the host wait: nothing ("default"), a warning ("warn") or an error.

    Args:
        debug_mode (int or str): "default" (0), "warn" (1) or "error" (2).

    Example:
        >>> torch.cuda.set_sync_debug_mode("default")
    """
    usable_device("cuda")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, got " + repr(debug_mode)
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in _MODES.values():
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1 or 2, got {debug_mode}")
    SYNCHRONIZATIONS.mode = debug_mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` has set: 0, 1 or 2.

    Returns:
        int: the mode.

    Example:
        >>> torch.cuda.get_sync_debug_mode()
        0
    """
    usable_device("cuda")
    return SYNCHRONIZATIONS.mode


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
        self.shared_memory_per_block_optin: int = found.get("sharedMemPerBlockOptin", self.shared_memory_per_block)
        self.shared_memory_per_multiprocessor: int = found.get("sharedMemPerMultiprocessor", 0)
        self.regs_per_multiprocessor: int = found["regsPerMultiprocessor"]
        self.is_integrated: int = found["integrated"]
        self.is_multi_gpu_board: int = found.get("isMultiGpuBoard", 0)
        self.pci_bus_id: int = found["pciBusID"]
        self.pci_device_id: int = found["pciDeviceID"]
        self.pci_domain_id: int = found["pciDomainID"]
        unique = found.get("uuid", b"")
        self.uuid: str = unique.hex() if isinstance(unique, bytes) else str(unique)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """What a device is: its name, its memory, its processors.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        its `name`, `total_memory`, `multi_processor_count`, `major` and `minor`.
    """
    index = index_of(device)
    return _DeviceProperties(_library().runtime.getDeviceProperties(index))


def get_device_name(device: Any = None) -> str:
    """The name of a device.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        str: the name.
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The generation of a device.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        tuple[int, int]: the major and the minor number.
    """
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """The generations that kernels are made for: they are compiled for the device that is there.

    Returns:
        list of strs: names such as "sm_90".
    """
    major, minor = get_device_capability()
    return [f"sm_{major}{minor}"]


def get_gencode_flags() -> str:
    """What tells NVIDIA's compiler to make such kernels.

    Returns:
        str: the flags.
    """
    return " ".join(f"-gencode compute={each.replace('sm', 'compute')},code={each}" for each in get_arch_list())


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device reads another one's memory by itself.

    Args:
        device: one device.
        peer_device: the other.

    Returns:
        bool: whether it does.

    Example:
        >>> torch.cuda.can_device_access_peer(0, 0)
        False
    """
    return driver_of(device).can_read(index_of(peer_device))


def ipc_collect() -> None:
    """Free the memory that was sent to other processes and that they no longer use.

    Example:
        >>> torch.cuda.ipc_collect()
    """
    usable_device("cuda")
    collect()


def current_blas_handle() -> int:
    """The handle with which cuBLAS is called.

    Returns:
        int: the handle.
    """
    return int(_library().get_cublas_handle())


def current_solver_handle() -> int:
    """The handle with which cuSOLVER is called.

    Returns:
        int: the handle.
    """
    return int(_library().device.get_cusolver_handle())


def check_error(res: int) -> None:
    """Raise what a number that the runtime returned means, unless it is 0.

    Args:
        res (int): the number.

    Example:
        >>> torch.cuda.check_error(0)
    """
    from . import CudaError

    if res != 0:
        raise CudaError(res)


class _Runtime:
    """The functions of CUDA's runtime that programs call, under its names; they return 0, or raise."""

    class cudaError:
        """What the functions return."""

        success = 0

    cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice = 1, 2, 3

    def _call(self, name: str, *args: Any) -> int:
        function: Callable[..., Any] = getattr(_library().runtime, name)
        function(*args)
        return 0

    def cudaMemGetInfo(self, device: int = 0) -> tuple[int, int]:
        """How many bytes of the device are free, and how many there are."""
        with on(device):
            return driver().pool.device_memory()

    def cudaProfilerStart(self) -> int:
        """Let NVIDIA's profilers look from now on."""
        return self._call("profilerStart")

    def cudaProfilerStop(self) -> int:
        """Let them look no more."""
        return self._call("profilerStop")

    def cudaHostRegister(self, pointer: int, size: int, flags: int = 0) -> int:
        """Let memory of the host be page-locked."""
        return self._call("hostRegister", pointer, size, flags)

    def cudaHostUnregister(self, pointer: int) -> int:
        """Undo `cudaHostRegister`."""
        return self._call("hostUnregister", pointer)

    def cudaDeviceSynchronize(self) -> int:
        """Wait for the device."""
        synchronize()
        return 0

    def cudaStreamCreate(self, pointer: int) -> int:
        """A new queue, whose handle is written to an address."""
        import ctypes

        ctypes.c_void_p.from_address(pointer).value = _library().runtime.streamCreate()
        return 0

    def cudaStreamDestroy(self, stream: int) -> int:
        """Forget a queue."""
        return self._call("streamDestroy", stream)

    def cudaGetErrorString(self, code: int) -> str:
        """What a number that the runtime returned means."""
        return "no error" if code == 0 else f"CUDA error {code}"


_runtime = _Runtime()


def cudart() -> Any:
    """The functions of CUDA's runtime that programs call directly.

    Returns:
        an object with these functions.
    """
    usable_device("cuda")
    return _runtime
