"""What the arrays need of a GPU: memory, copies, compiled kernels and launches, by CuPy.

The tests put another driver in its place, whose memory is the host's, so that everything above it runs where there is
no GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .blas import Blas
from .pinned import is_pinned

Launch = Callable[[int, int, bytes], None]
"""Start a kernel: so many blocks, so many threads in each, the fields of its arguments."""


class Memory(Protocol):
    """A piece of the device's memory, which is free again when nothing refers to it."""

    ptr: int


class Driver(Protocol):
    """What runs things on one type of device."""

    pool: Pool
    """Where memory comes from, and how much of it is in use."""
    functions: Any
    """A module with NumPy's functions for the library's own arrays."""

    def allocate(self, nbytes: int) -> Memory:
        """Memory, uninitialised."""

    def upload(self, pointer: int, host: Any) -> None:
        """Copy a host array without gaps, in memory order, to the device."""

    def download(self, host: Any, pointer: int) -> None:
        """Copy from the device into a host array without gaps, and wait for it."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device."""

    def clear(self, pointer: int, nbytes: int) -> None:
        """Set bytes to zero."""

    def compile(self, source: str) -> Launch:
        """The function `kernel` of a source."""

    def multiply(self, result: Any, left: Any, right: Any) -> None:
        """Products of matrices along the first of three dimensions; each matrix lies by rows or by columns."""

    def seen(self, array: Any) -> Any:
        """An array as one of the library's own, over the same memory."""

    def is_seen(self, value: Any) -> bool:
        """Whether a value is one of the library's own arrays."""

    def adopted(self, value: Any) -> tuple[Memory, int]:
        """The memory of one of the library's own arrays, and the address of its first element."""

    def synchronize(self) -> None:
        """Wait for everything that was started."""

    def stream(self) -> int:
        """The handle of the queue in use."""

    def faults(self) -> int:
        """The address of two numbers that a kernel writes to if an index is wrong: 1, and the index."""

    def block_threads(self, wanted: int) -> int:
        """How many threads of a block can meet, of so many wanted."""

    def resident_threads(self) -> int:
        """How many threads can be on the device at a time."""


_HEAD = bytes.__basicsize__ - 1
"""How far the content of a `bytes` object is from its beginning."""


class _Parameters(threading.local):
    """The list of a kernel's parameters, of which there is one: its address is what a launch takes."""

    def __init__(self) -> None:
        self.list = np.zeros(1, np.uint64)
        self.address = _address(self.list)


class Pool:
    """CuPy's pool of memory, with what PyTorch says about its own: how much is in use, and the most that ever was."""

    def __init__(self, found: Any, runtime: Any, failure: type[Exception]) -> None:
        self._found = found
        self._runtime = runtime
        self._failure = failure
        self._take = found.malloc
        self.allocated: Callable[[], int] = found.used_bytes
        self.reserved: Callable[[], int] = found.total_bytes
        self.peak_allocated = self.peak_reserved = self.allocations = self.failures = self.retries = 0
        self.limited_to: int | None = None

    def allocate(self, nbytes: int) -> Memory:
        """Memory, uninitialised; freed when nothing refers to it."""
        try:
            memory: Memory = self._take(nbytes)
        except self._failure:
            raise self._exhausted(nbytes) from None
        self.allocations += 1
        used = self.allocated()
        if used > self.peak_allocated:
            self.peak_allocated = used
            self.peak_reserved = max(self.peak_reserved, self.reserved())
        return memory

    def _exhausted(self, nbytes: int) -> Exception:
        from ..._core.text.memory_errors import out_of_device_memory
        from .array import DeviceArray

        self.failures += 1
        free, total = self.device_memory()
        return out_of_device_memory(nbytes, free, total, self.allocated(), self.reserved(), DeviceArray)

    def device_memory(self) -> tuple[int, int]:
        """How many bytes of the device are free, and how many there are."""
        free, total = self._runtime.memGetInfo()
        return int(free), int(total)

    def reset_peaks(self) -> None:
        """Let the highest values begin again from the present ones."""
        self.peak_allocated, self.peak_reserved = self.allocated(), self.reserved()

    def give_back(self) -> None:
        """Return to the device what is not in use."""
        self._found.free_all_blocks()

    def limit(self, nbytes: int) -> None:
        """Let the pool have no more than so many bytes."""
        self.limited_to = nbytes
        self._found.set_limit(size=nbytes)


class CupyDriver:
    """CUDA, by CuPy: its pool of memory, its compiler and cache of kernels, its current stream."""

    def __init__(self) -> None:
        import cupy
        from cupy_backends.cuda.api import driver, runtime

        self.functions = cupy
        self._cuda = cupy.cuda
        self._driver = driver
        self._runtime = runtime
        self.pool = Pool(cupy.get_default_memory_pool(), runtime, cupy.cuda.memory.OutOfMemoryError)
        self.allocate = self.pool.allocate
        self._current_stream = cupy.cuda.get_current_stream
        self._blas: Blas | None = None
        self._faults: Any = None

    def upload(self, pointer: int, host: Any) -> None:
        stream = self._current_stream()
        self._runtime.memcpyAsync(pointer, _address(host), host.nbytes, 1, stream.ptr)
        if is_pinned(host):  # other memory has been read when the call returns; this may be somebody else's soon
            stream.synchronize()

    def download(self, host: Any, pointer: int) -> None:
        stream = self._current_stream()
        self._runtime.memcpyAsync(_address(host), pointer, host.nbytes, 2, stream.ptr)
        stream.synchronize()
        self._report()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._runtime.memcpyAsync(target, source, nbytes, 3, self._current_stream().ptr)

    def clear(self, pointer: int, nbytes: int) -> None:
        self._runtime.memsetAsync(pointer, 0, nbytes, self._current_stream().ptr)

    def compile(self, source: str) -> Launch:
        module = self.functions.RawModule(code=source, options=("--std=c++17",))
        handle: int = module.get_function("kernel").kernel.ptr
        launch_kernel, current_stream, parameters = self._driver.launchKernel, self._current_stream, _Parameters()

        def launch(blocks: int, threads: int, fields: bytes) -> None:
            parameters.list[0] = id(fields) + _HEAD  # the driver copies the fields before it returns
            launch_kernel(handle, blocks, 1, 1, threads, 1, 1, 0, current_stream().ptr, parameters.address, 0)

        vars(launch)["module"] = module
        return launch

    def multiply(self, result: Any, left: Any, right: Any) -> None:
        if self._blas is None:
            self._blas = Blas()
        self._blas.multiply(result, left, right)

    def seen(self, array: Any) -> Any:
        memory = self._cuda.MemoryPointer(array.memory.mem, array.pointer - array.memory.mem.ptr)
        return self.functions.ndarray(array.shape, array.dtype, memory, array.strides)

    def is_seen(self, value: Any) -> bool:
        return isinstance(value, self.functions.ndarray)

    def adopted(self, value: Any) -> tuple[Memory, int]:
        pointer: int = value.data.ptr
        return self._cuda.MemoryPointer(value.data.mem, 0), pointer

    def synchronize(self) -> None:
        self._cuda.Device().synchronize()
        self._report()

    def stream(self) -> int:
        return int(self._current_stream().ptr)

    def faults(self) -> int:
        if self._faults is None:
            memory = self._cuda.alloc_pinned_memory(16)
            self._faults = np.frombuffer(memory, np.int64, 2)
            self._faults[:] = 0
        return _address(self._faults)

    def _report(self) -> None:
        """Raise what a kernel has found wrong, once it is known that it has run."""
        if self._faults is not None and self._faults[0]:
            found = int(self._faults[1])
            self._faults[:] = 0
            raise IndexError(f"Target {found} is out of bounds. A kernel on the GPU found it, some time ago.")

    def block_threads(self, wanted: int) -> int:
        return wanted

    def resident_threads(self) -> int:
        found = self._cuda.Device().attributes
        return int(found["MultiProcessorCount"]) * int(found["MaxThreadsPerMultiProcessor"])


def _address(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


_driver: Driver | None = None


def driver() -> Driver:
    """The driver in use."""
    assert _driver is not None, "a device array needs a driver"
    return _driver


def pool() -> Pool:
    """The pool of the driver in use."""
    return driver().pool


def use(found: Driver) -> None:
    """Let `found` be the driver in use, before there is any array."""
    global _driver
    _driver = found
