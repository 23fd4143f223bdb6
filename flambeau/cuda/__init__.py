"""CUDA devices, where there are any; elsewhere questions are answered, and everything else says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.device import device as _Device
from .._core.device import usable_device
from .._core.names.absent import Table
from ._missing import NOT_COMPILED, STORAGES, TENSORS, is_present, where_present

if TYPE_CHECKING:  # for editors and type checkers, which do not run `__getattr__` below
    from ._device import *  # noqa: F403
    from ._graphs import *  # noqa: F403
    from ._memory import *  # noqa: F403

has_half = True
has_magma = False
_device_t = Any
_MEMORY = (
    "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete caching_allocator_disabled "
    "caching_allocator_enable change_current_allocator empty_cache get_allocator_backend "
    "get_per_process_memory_fraction host_memory_stats host_memory_stats_as_nested_dict list_gpu_processes "
    "max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached "
    "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
    "reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated "
    "reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats set_per_process_memory_fraction "
    "use_mem_pool"
)

__getattr__, __dir__ = where_present(
    "_device _nvidia_ml _types",
    Table(__name__)
    .submodules("amp comm gds graphs green_contexts jiterator memory nccl nvtx profiler random sparse streams tunable")
    .returning(lambda: False, functions="is_bf16_supported is_initialized is_tf32_supported")
    .returning(lambda: False, functions="_is_in_bad_fork _is_compiled")
    .constant("default_generators", ())
    .constant("_initialized", False)
    .returning(list, functions="get_arch_list")
    .returning(lambda: "", functions="get_gencode_flags")
    .returning(lambda: None, functions="set_stream")
    .raising(
        AssertionError,
        NOT_COMPILED,
        functions="_lazy_init can_device_access_peer cudart current_blas_handle current_solver_handle current_stream "
        "default_stream get_device_capability get_device_name get_device_properties get_stream_from_external "
        "get_sync_debug_mode init ipc_collect set_sync_debug_mode synchronize",
        classes=STORAGES,
    )
    .raising(TypeError, "type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.", classes=TENSORS)
    .raising(
        AttributeError,
        "torch.cuda.{name} needs CUDA, which this build does not have",
        functions="_sleep check_error set_device",
    )
    .raising(
        ModuleNotFoundError,
        "torch.cuda.{name} needs a CUDA device and the package nvidia-ml-py",
        functions="clock_rate device_memory_used memory_usage power_draw temperature utilization",
    )
    .elsewhere("Event ExternalStream Stream", "cuda.streams")
    .elsewhere("GreenContext", "cuda.green_contexts")
    .elsewhere("CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables", "cuda.graphs")
    .elsewhere(
        "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state "
        "set_rng_state_all",
        "cuda.random",
    )
    .elsewhere(_MEMORY, "cuda.memory")
    .elsewhere("OutOfMemoryError AcceleratorError", "_core.names.error_classes"),
)


class CudaError(RuntimeError):
    """An error of the driver.

    Args:
        code (int): the driver's number of the error.

    Example:
        >>> str(torch.cuda.CudaError(2))
        'CUDA error (2)'
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """A call that waited for the first use of a device failed.

    Example:
        >>> issubclass(torch.cuda.DeferredCudaCallError, Exception)
        True
    """


class cudaStatus:
    """What calls of the driver return.

    Example:
        >>> torch.cuda.cudaStatus.SUCCESS
        0
    """

    SUCCESS = 0
    ERROR_NOT_READY = 34


def is_available() -> bool:
    """Whether there is a CUDA device to use.

    Returns:
        bool: whether there is.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> torch.ones(2, device=device).sum().item()
        2.0
    """
    return is_present()


def device_count() -> int:
    """How many CUDA devices there are to use.

    Returns:
        int: how many.

    Example:
        >>> torch.cuda.device_count() == 0 or torch.cuda.is_available()
        True
    """
    from .._backends.cuda.runtime.detection import count

    return count()


def current_device() -> int:
    """The ordinal of the device in use.

    Returns:
        int: the ordinal.

    Example:
        >>> torch.cuda.current_device() if torch.cuda.is_available() else 0
        0
    """
    found = usable_device("cuda").index
    return 0 if found is None else found


def _exchange_device(index: int) -> int:
    """Let a device be the one in use; the ordinal of the one before. A negative ordinal changes nothing."""
    if index < 0:
        return -1
    from .._backends.cuda.runtime.devices import use_ordinal

    before = current_device()
    use_ordinal(index)
    return before


_maybe_exchange_device = _exchange_device


class device:
    """A context in which another device is in use; None and negative ordinals change nothing.

    Args:
        device: a device, an ordinal, or None.

    Example:
        >>> with torch.cuda.device(None):
        ...     pass
    """

    def __init__(self, device: Any) -> None:
        if isinstance(device, int) and device < 0:
            device = None
        named = device if isinstance(device, _Device) else None if device is None else _Device(device)
        self.idx = -1 if named is None or named.index is None else named.index
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            usable_device(_Device("cuda", self.idx))
            self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.prev_idx >= 0:
            _exchange_device(self.prev_idx)


class device_of(device):
    """A context in which the device of a tensor is in use; for a tensor elsewhere, nothing changes.

    Args:
        obj: a tensor.

    Example:
        >>> with torch.cuda.device_of(torch.ones(1)):
        ...     pass
    """

    def __init__(self, obj: Any) -> None:
        self.idx = obj.get_device() if obj.is_cuda else -1
        self.prev_idx = -1


class StreamContext:
    """A context in which another queue is in use; None is none.

    Args:
        stream: the stream; None changes nothing.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     pass
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            usable_device("cuda")
            self.stream.enter()

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            self.stream.leave()


def stream(stream: Any) -> StreamContext:
    """A context in which `stream` is in use.

    Args:
        stream: the stream; None changes nothing.

    Returns:
        StreamContext: the context.

    Example:
        >>> with torch.cuda.stream(None):
        ...     pass
    """
    return StreamContext(stream)
