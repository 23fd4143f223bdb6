"""The backend of CUDA devices. `runtime/presence.py` starts it when a program first names one."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from ..._core.backend import Backend, backend_of, install, is_installed
from ..families import PLACES
from .arrays.array import DeviceArray, empty, from_host, to_host, window, zeros
from .memory.block import PooledMemory
from .memory.graph_results import ResultMemory
from .runtime.compile_queue import COMPILE_QUEUE
from .runtime.driver import driver
from .runtime.synchronization import HERE


class Cuda(Backend):
    """What runs ops on a GPU: `DeviceArray`s, reference kernels on them, and lowerings."""

    array_class = DeviceArray
    costs_per_call = True
    is_compiled_for = True

    def __init__(self) -> None:
        super().__init__("cuda")
        self.array_functions = _family

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

    def used_by(self, array: Any, stream: int) -> None:
        if isinstance(array.memory, PooledMemory):
            driver().pool.used_by(array.memory, stream)
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


_FAMILIES = frozenset((
    "class_loss", "conv", "interchange", "multi", "norms", "placeholders", "pointwise", "products", "random",
    "recurrent", "recurrent_network", "rows", "scaled", "segments",
))  # fmt: skip


@cache
def _family(family: str) -> Any:
    """The module of the functions of a family; None: there are none."""
    return importlib.import_module(f"{__package__}.{PLACES[family]}") if family in _FAMILIES else None


def start() -> None:
    """Have the backend; more than once is once."""
    if is_installed("cuda"):
        return
    from .runtime.driver import CupyDriver, use

    use(CupyDriver())
    install_backend()


def install_backend() -> Cuda:
    """Let the arrays of the driver in use be those of the device type "cuda"."""
    from .arrays import functions as _functions  # noqa: F401  (completes the class of arrays)
    from .lowerings import push

    backend = Cuda()
    push(backend)
    backend.in_one_pass = backend_of("cpu").in_one_pass
    install(backend)
    return backend
