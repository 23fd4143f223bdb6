"""The backend of CUDA devices. `runtime/detection.py` starts it when a program first names one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..._core.backend import Backend, Kernel, backend_of, install, is_installed
from .arrays.array import DeviceArray, empty, from_host, to_host, window, zeros
from .memory.block import PooledMemory
from .memory.graph_results import ResultMemory
from .runtime.compile_queue import COMPILE_QUEUE
from .runtime.devices import (
    Devices,
    beside_its_arrays,
    fetched,
    lead_calls_to_their_devices,
    ordinal_of,
    there,
)
from .runtime.driver import Driver, driver, use
from .runtime.plans import forget_plans
from .runtime.synchronization import HERE


class Cuda(Backend):
    """What runs ops on a GPU: `DeviceArray`s, reference kernels on them, and lowerings."""

    array_class = DeviceArray
    costs_per_call = True
    plans_derivatives = True
    is_compiled_for = True
    kept_levels = frozenset(("run", "threads", "batch"))

    def __init__(self) -> None:
        super().__init__("cuda")

    def forget(self) -> None:
        super().forget()
        forget_plans()

    def asarray(self, value: Any) -> Any:
        return value if type(value) is DeviceArray else from_host(np.asarray(value))

    def empty(self, shape: Any, array_type: Any) -> Any:
        return empty(shape, array_type)

    def zeros(self, shape: Any, array_type: Any) -> Any:
        return zeros(shape, array_type)

    def from_host(self, array: Any) -> Any:
        return from_host(array)

    def to_host(self, array: Any) -> Any:
        return to_host(array)

    @contextlib.contextmanager
    def without_waiting(self) -> Iterator[None]:
        before, HERE.goes_on = HERE.goes_on, True
        try:
            yield
        finally:
            HERE.goes_on = before

    def all_within(self, array: Any, low: int, high: int, op: str) -> bool:
        from .indexing.bounds import note_outside

        return note_outside(array, low, high, op)

    def is_recording(self) -> bool:
        return HERE.recording is not None

    def place_in_work(self) -> Any:
        return id(HERE.recording), HERE.ordinal, driver().pool.shelves_in_use()

    def used_by(self, array: Any, stream: Any) -> None:
        if isinstance(array.memory, PooledMemory):
            ordinal = getattr(stream, "device_index", array.memory.ordinal)
            driver().pool.used_by(array.memory, ordinal, getattr(stream, "cuda_stream", 0))
        elif isinstance(array.memory, ResultMemory):
            array.memory.stays()

    def window(self, memory: Any, shape: Any, array_type: Any, start: int, strides: Any) -> Any:
        return window(memory, shape, array_type, start, strides)

    def deferring_launches(self) -> Any:
        return COMPILE_QUEUE.deferring_launches()

    def address(self, array: Any) -> int:
        COMPILE_QUEUE.catch_up()
        place: int = array.pointer
        return place


class OneOfSeveral(Cuda):
    """The backend of one device of several: what it runs and makes is on that device."""

    plans_derivatives = False

    def __init__(self, whole: Cuda, ordinal: int) -> None:
        super().__init__()
        self.ordinal: int = ordinal
        self.in_one_pass = whole.in_one_pass
        for name in ("asarray", "empty", "zeros", "from_host"):
            setattr(self, name, there(ordinal, getattr(self, name)))
        for name in ("to_host", "used_by", "all_within"):
            setattr(self, name, getattr(whole, name))

    def lowering(self, name: str) -> Kernel | None:
        found = super().lowering(name)
        return getattr(found, "unled", found)

    def prepare(self, op: Any) -> Any:
        self.runs[op] = run = there(self.ordinal, super().prepare(op))
        return run

    def first_try(self, op: Any) -> Any:
        self.tries[op] = run = there(self.ordinal, super().first_try(op))
        return run

    def ordinal_of(self, array: Any) -> int | None:
        return ordinal_of(array)

    def fetched(self, array: Any) -> Any:
        return fetched(array, self.ordinal)


class SeveralCuda(Cuda):
    """The backend of the device that a thread works on, among several, and of arrays on whichever."""

    is_for_several = True

    def __init__(self, count: int) -> None:
        super().__init__()
        for name in ("to_host", "used_by", "all_within"):
            setattr(self, name, beside_its_arrays(getattr(self, name)))
        self._count = count
        self._single: list[OneOfSeveral] = []

    def at(self, index: int | None) -> Backend:
        if not self._single:
            self._single = [OneOfSeveral(self, ordinal) for ordinal in range(self._count)]
        return self if index is None else self._single[index]

    def ordinal_of(self, array: Any) -> int | None:
        return ordinal_of(array)

    def forget(self) -> None:
        super().forget()
        for each in getattr(self, "_single", ()):
            each.forget()


def start() -> None:
    """Have the backend; more than once is once."""
    if is_installed("cuda"):
        return
    import cupy

    from .runtime.driver import CupyDriver

    drivers = [CupyDriver(ordinal) for ordinal in range(cupy.cuda.runtime.getDeviceCount())]
    if len(drivers) == 1:
        cupy.cuda.set_allocator(drivers[0].allocate_for_library)
    else:
        cupy.cuda.set_allocator(lambda nbytes: drivers[HERE.ordinal].allocate_for_library(nbytes))
    install_backend(drivers)


def install_backend(drivers: Sequence[Driver]) -> Cuda:
    """Let the arrays of some drivers, one for each device, be those of the device type "cuda"."""
    from .arrays import functions as _functions  # noqa: F401  (completes the class of arrays)
    from .lowerings import push

    if len(drivers) == 1:
        use(drivers[0])
        backend = Cuda()
    else:
        use(cast(Driver, Devices(drivers)))  # what it does not have itself is one of the drivers'
        lead_calls_to_their_devices()
        backend = SeveralCuda(len(drivers))
    push(backend)
    backend.in_one_pass = backend_of("cpu").in_one_pass
    install(backend)
    return backend
