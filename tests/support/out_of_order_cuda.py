"""The driver of the CUDA backend on devices whose streams run beside each other, in an order that a seed chooses.

All that orders work is the backend's own: pools, marks, copies, captures. Kernels are compiled for the host, products
and library functions are NumPy's. `SCHEDULE` (`stream_schedule.py`) holds the work back and finds races.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np

from flambeau._backends.cuda.arrays.array import over
from flambeau._backends.cuda.runtime.compile_queue import COMPILE_QUEUE
from flambeau._backends.cuda.runtime.driver import CupyDriver
from flambeau._backends.cuda.runtime.synchronization import HERE
from flambeau._core.backend import backend_of, is_installed
from tests.support.out_of_order_runtime import CUDARuntimeError, Runtime, library
from tests.support.simulated_cuda import SimulatedDriver
from tests.support.stream_schedule import SCHEDULE, Access


class _Anywhere:
    """Stands for memory that others keep alive."""

    ptr = 0


_ANYWHERE = _Anywhere()


class OutOfOrderDriver(CupyDriver):
    """One of the simulated devices."""

    def __init__(self, ordinal: int, runtime: Runtime, cuda: Any) -> None:
        self._begin(ordinal, np, cuda, runtime, CUDARuntimeError)
        self._host = SimulatedDriver(ordinal)
        self.allocate: Any = self._allocate
        vars(self)["_launch_function"] = lambda: self._start

    def _allocate(self, nbytes: int) -> Any:
        memory = self.pool.allocate(nbytes)
        self._runtime.handed_out(memory.ptr, nbytes)
        return memory

    # ----- kernels ----------------------------------------------------------------------------------------------------

    def _kernel(self, source: str) -> tuple[Any, Any]:
        return self._host._run_of(source), None

    def _start(self, run: Any, blocks: int, threads: int, fields: bytes, stream: int) -> None:
        """Give a kernel to a stream: it may touch every block that one of its arguments is an address in."""
        numbers = np.frombuffer(fields[: len(fields) // 8 * 8], np.uint64).tolist()
        accesses = [access for number in numbers if (access := self._access(number, None)) is not None]
        self._runtime.do(stream, "a kernel", lambda: run(blocks, threads, fields), accesses)

    def _access(self, address: int, writes: bool | None) -> Access | None:
        device = self._runtime.device_of(address)
        if device is None or device < 0:
            return None
        if device != self.ordinal:
            raise CUDARuntimeError(700, f"cuda:{self.ordinal} is given memory of cuda:{device}")
        block = self._runtime.block_of(address)
        return None if block is None else Access(address, block[1], writes, block[0])

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Any:
        wide = np.float32 if left.dtype.itemsize == 2 else left.dtype
        forms = [(each.shape, each.dtype, each.strides) for each in (result, left, right)]

        def multiply(*pointers: int) -> None:
            target, first, second = (
                self._host._window(over(_ANYWHERE, place, *form)) for form, place in zip(forms, pointers, strict=True)
            )
            accesses = [self._access(place, None) for place in pointers]

            def step() -> None:
                found = np.matmul(first.astype(wide), second.astype(wide))
                target[...] = (found + target if added else found).astype(target.dtype)

            given = self._current_stream().ptr, "a product", step, [each for each in accesses if each is not None]
            if COMPILE_QUEUE.steps is not None:
                COMPILE_QUEUE.start(self._runtime.do, *given)
            else:
                self._runtime.do(*given)

        return multiply

    def _products(self) -> Any:
        return self

    def handle_for(self, stream: int) -> None:
        """No library needs to know of a stream before it is captured."""

    # ----- the library's own arrays -----------------------------------------------------------------------------------

    def seen(self, array: Any) -> Any:
        COMPILE_QUEUE.catch_up()
        if HERE.recording is not None:
            raise NotImplementedError("the simulated device records its own kernels alone, not those of a library")
        access = self._access(array.pointer, None) if array.size else None
        if access is not None:
            SCHEDULE.access_now(self._runtime.key(self._current_stream().ptr), "a library function", access)
        return self._host._window(array)

    _window = seen  # tests play libraries with it

    def is_seen(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic))

    def adopted(self, value: Any) -> tuple[Any, int]:
        array = np.asarray(value)
        low, high = np.lib.array_utils.byte_bounds(array)
        place = array.__array_interface__["data"][0]
        memory = self.allocate(max(high - low, 1))
        if array.size:
            self._runtime.memcpyAsync(memory.ptr, low, high - low, 1, self._current_stream().ptr)
        return memory, memory.ptr + place - low

    def raising_failures(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def identity(self) -> str:
        return "the host"

    def block_threads(self, wanted: int) -> int:
        return 1


SEED = "FLAMBEAU_SIMULATED_STREAMS"
"""The environment variable that has a seed for the order of all work."""


class _HostLibrary(ctypes.CDLL):
    """Refuses the libraries of a real GPU, which would take the simulated memory."""

    def __init__(self, name: Any, *args: Any, **kwargs: Any) -> None:
        if name is not None and any(word in str(name) for word in ("libcublas", "libcudnn", "libcuda.so")):
            raise OSError(f"{name} is for real devices")
        super().__init__(name, *args, **kwargs)


def install_out_of_order_devices(count: int) -> Any:
    """Have so many devices of this kind, and give their backend; more than once is once."""
    if is_installed("cuda"):
        return backend_of("cuda")
    from flambeau._backends.cuda.backend import install_backend

    setattr(ctypes, "CDLL", _HostLibrary)  # noqa: B010
    runtime = Runtime(count)
    cuda = library(runtime)
    return install_backend([OutOfOrderDriver(ordinal, runtime, cuda) for ordinal in range(count)])
