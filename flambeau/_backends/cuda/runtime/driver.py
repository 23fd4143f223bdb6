"""What the arrays need of a GPU: memory, copies, compiled kernels and launches, by CuPy.

Kernels are kept on disk here, not by CuPy, which has to load the compiler to know what it has kept.

The tests put another driver in its place, whose memory is the host's, so that everything above it runs where there is
no GPU.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...._codegen.machine.device_calls import device_launch
from ..linalg.blas import Blas, Product
from ..memory.block import PooledMemory
from ..memory.host import HostPool, pinned_memory
from ..memory.pool import Pool, exhausted
from ..memory.supplier import RuntimeSupplier
from ..memory.virtual import VirtualMemory
from .compile_queue import COMPILE_QUEUE
from .conditional import begin_body, condition_source
from .disk_cache import made_once, name_for
from .green import GreenStream
from .index_errors import PLACES, Faults
from .synchronization import HERE, SYNCHRONIZATIONS

_OPTIONS = "--std=c++17", "-ftz=true"
"""What kernels are compiled with."""

Launch = Callable[[int, int, bytes], None]
"""Start a kernel: so many blocks, so many threads in each, the fields of its arguments."""


class Memory(Protocol):
    """A piece of the device's memory, which is free again when nothing refers to it."""

    ptr: int


class Driver(Protocol):
    """What runs things on a device, or on the one of several that a thread works on (`devices.py`)."""

    @property
    def ordinal(self) -> int:
        """Which of the machine's devices it is."""

    pool: Pool
    """Where memory comes from, and how much of it is in use."""
    host_pool: HostPool
    """Where page-locked memory of the host comes from."""
    functions: Any
    """A module with NumPy's functions for the library's own arrays."""

    @property
    def library(self) -> Any:
        """The module of queues, marks and graphs."""

    def allocate(self, nbytes: int) -> Memory:
        """Memory, uninitialised."""

    def upload(self, pointer: int, host: Any) -> None:
        """Copy a host array without gaps, in memory order, to the device."""

    def download(self, host: Any, pointer: int) -> None:
        """Copy from the device into a host array without gaps, and wait for it."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device."""

    def copy_from(self, peer: Any, target: int, source: int, nbytes: int) -> None:
        """Copy from another device, whose driver is `peer`, in order with the queues in use on both."""

    def can_read(self, ordinal: int) -> bool:
        """Whether the device reads the memory of another one by itself."""

    def enter(self) -> None:
        """Let this thread's calls be about the device."""

    def clear(self, pointer: int, nbytes: int) -> None:
        """Set bytes to zero."""

    def compile(self, source: str) -> Launch:
        """The function `kernel` of a source."""

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Product:
        """What multiplies matrices of these forms along the first of three dimensions, `added` to the result or not;
        each matrix lies by rows or by columns.
        """

    def seen(self, array: Any) -> Any:
        """An array as one of the library's own, over the same memory."""

    def raising_failures(self) -> AbstractContextManager[Any]:
        """A context in which the library's decompositions raise NumPy's error for matrices that have none."""

    def is_seen(self, value: Any) -> bool:
        """Whether a value is one of the library's own arrays."""

    def adopted(self, value: Any) -> tuple[Memory, int]:
        """The memory of one of the library's own arrays, and the address of its first element."""

    def synchronize(self) -> None:
        """Wait for everything that was started."""

    def stream(self) -> int:
        """The handle of the queue in use, where everything has been started that comes before."""

    def queue(self) -> int:
        """The handle of the queue in use, for work that `compile_queue.py` starts when its turn comes."""

    def faults(self, op: str) -> int:
        """The address of two numbers that a kernel of `op` writes to if an index is wrong: 1, and the index."""

    def report_faults(self) -> None:
        """Raise what a kernel has found wrong, once it is known that it has run."""

    def use_stream(self, found: Any) -> None:
        """Let one of the library's queues be the one in use."""

    def begin_recording(self, stream: int) -> None:
        """Write down what is given to a queue, instead of doing it."""

    def end_recording(self, stream: int) -> Any:
        """The graph of what was written down since `begin_recording`."""

    def begin_body(self, flag: int) -> Any:
        """Write down from now on, for the graph that is recorded, what is done only where the byte at `flag` is not 0
        when the work comes to it; what `end_body` needs."""

    def end_body(self, found: Any) -> None:
        """What comes next is done in every case again."""

    def green_stream(self, count: int) -> Any:
        """A queue whose work runs on so many of the processors, or some more: its `handle`, and their `count`."""

    def instantiate(self, graph: Any) -> Any:
        """A graph in a form that can be started."""

    def start_graph(self, executable: Any) -> None:
        """Do what was written down, in the queue in use."""

    def draw_graph(self, graph: Any, path: str) -> None:
        """Write a graph to a file, as a drawing of Graphviz's."""

    def forget_graph(self, graph: Any) -> None:
        """Nobody needs a graph any more."""

    def forget_executable(self, executable: Any) -> None:
        """Nobody starts it any more."""

    def identity(self) -> str:
        """What distinguishes devices and their software from others: the name, the processors, the versions."""

    def block_threads(self, wanted: int) -> int:
        """How many threads of a block can meet, of so many wanted."""

    def resident_threads(self, multiprocessors: int) -> int:
        """How many threads can be on so many multiprocessors at a time; 0: on those of the device."""

    def generation(self) -> int:
        """The device's compute capability, times ten: which instructions it has."""


class CupyDriver:
    """CUDA, by CuPy: its pool of memory, its compiler and cache of kernels, its current stream."""

    ordinal = 0
    _launch_function: Callable[[], Any] = staticmethod(device_launch)
    """What starts a kernel, from its table."""

    def __init__(self, ordinal: int = 0) -> None:
        import cupy
        from cupy_backends.cuda.api import driver, runtime

        self._launcher = ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p).value
        self._begin(ordinal, cupy, cupy.cuda, runtime, driver.CUDADriverError)
        self.pool.space = VirtualMemory(ordinal, runtime)

    def _begin(self, ordinal: int, functions: Any, library: Any, runtime: Any, failure: type[Exception]) -> None:
        """Have nothing of a device but what calls it."""
        self.ordinal = ordinal
        self.functions = functions
        self._library = library
        self._failure = failure
        self._runtime = runtime
        self._current_stream = library.get_current_stream
        supplier = RuntimeSupplier(runtime, self._current_stream)
        self.pool = Pool(supplier, exhausted, ordinal)
        self.host_pool = HostPool(supplier)
        self.allocate = self.pool.allocate
        self._blas: Blas | None = None
        self._faults: Faults | None = None
        self._shares: tuple[int, int] | None = None
        self._generation: int | None = None
        self._identity: str | None = None
        self._condition: Launch | None = None
        self._bodies: list[Any] = []
        """Queues for what graphs do in some cases only."""

    @property
    def library(self) -> Any:
        COMPILE_QUEUE.catch_up()
        return self._library

    def allocate_for_library(self, nbytes: int) -> Any:
        """Memory as the library itself takes it."""
        COMPILE_QUEUE.catch_up()  # the library writes at once, and what is to be started may be about this memory
        memory = self.allocate(nbytes)
        return self._library.MemoryPointer(self._library.UnownedMemory(memory.ptr, nbytes, memory, self.ordinal), 0)

    def upload(self, pointer: int, host: Any) -> None:
        COMPILE_QUEUE.catch_up()
        stream = self._current_stream()
        memory = pinned_memory(host)
        if HERE.recording is not None:
            if memory is None:  # the copy is done again with each replay: of what is there now
                host, given = self.host_pool.empty((host.nbytes,), np.uint8), host
                ctypes.memmove(_address(host), _address(given), given.nbytes)
            HERE.recording.kept.append(host)
        self._runtime.memcpyAsync(pointer, _address(host), host.nbytes, 1, stream.ptr)
        if memory is not None:  # other memory has been read when the call returns
            if HERE.goes_on or HERE.recording is not None:
                memory.users.add((self.ordinal, int(stream.ptr)))
            else:
                SYNCHRONIZATIONS.note("a copy from pinned memory without non_blocking=True")
                stream.synchronize()

    def download(self, host: Any, pointer: int) -> None:
        COMPILE_QUEUE.catch_up()
        stream = self._current_stream()
        memory = pinned_memory(host)
        if memory is not None and (HERE.goes_on or HERE.recording is not None):
            memory.users.add((self.ordinal, int(stream.ptr)))
            self._runtime.memcpyAsync(_address(host), pointer, host.nbytes, 2, stream.ptr)
            return
        SYNCHRONIZATIONS.note("reading a tensor's elements")
        self._runtime.memcpyAsync(_address(host), pointer, host.nbytes, 2, stream.ptr)
        stream.synchronize()
        self.report_faults()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        stream = self._current_stream().ptr
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._runtime.memcpyAsync, target, source, nbytes, 3, stream)
        else:
            self._runtime.memcpyAsync(target, source, nbytes, 3, stream)

    def copy_from(self, peer: Any, target: int, source: int, nbytes: int) -> None:
        COMPILE_QUEUE.catch_up()
        here = self._current_stream()
        event = self._library.Event(disable_timing=True)
        event.record(here)
        HERE.ordinal = peer.ordinal  # finalizers that run meanwhile leave the device in use that they find
        peer.enter()
        try:  # in the other one's queue: what frees the source there comes after the copy
            there = self._current_stream()
            there.wait_event(event)
            self._runtime.memcpyPeerAsync(target, self.ordinal, source, peer.ordinal, nbytes, there.ptr)
            done = self._library.Event(disable_timing=True)
            done.record(there)
        finally:
            HERE.ordinal = self.ordinal
            self.enter()
        here.wait_event(done)

    def can_read(self, ordinal: int) -> bool:
        return ordinal != self.ordinal and bool(self._runtime.deviceCanAccessPeer(self.ordinal, ordinal))

    def enter(self) -> None:
        self._runtime.setDevice(self.ordinal)

    def clear(self, pointer: int, nbytes: int) -> None:
        stream = self._current_stream().ptr
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._runtime.memsetAsync, pointer, 0, nbytes, stream)
        else:
            self._runtime.memsetAsync(pointer, 0, nbytes, stream)

    def compile(self, source: str) -> Launch:
        kernel = COMPILE_QUEUE.compiled(partial(self._kernel, source))
        table: Any = None
        start, current_stream, failure = self._launch_function(), self._current_stream, self._failure

        def launch(blocks: int, threads: int, fields: bytes) -> None:
            if COMPILE_QUEUE.steps is None and table is not None:
                try:
                    start(table, blocks, threads, fields, current_stream().ptr)
                    return
                except failure:  # a thread that has only launched so far has no context
                    pass
            COMPILE_QUEUE.start(launch_in, current_stream().ptr, blocks, threads, fields)

        def launch_in(stream: int, blocks: int, threads: int, fields: bytes) -> None:
            nonlocal table
            self._runtime.setDevice(self.ordinal)
            if table is None:
                table, vars(launch)["module"] = kernel()
            start(table, blocks, threads, fields, stream)

        return launch

    def _kernel(self, source: str) -> tuple[Any, Any]:
        """What a launch of the function `kernel` of a source needs to know, and what keeps it on the device."""
        self._runtime.setDevice(self.ordinal)  # a thread that only compiles has no context either
        name = name_for("kernel", self.identity(), _OPTIONS, source)

        def compiled() -> bytes:
            code: bytes = self._library.compiler.compile_using_nvrtc(source, _OPTIONS, cache_in_memory=True)[0]
            return code

        def loaded(code: bytes) -> tuple[Any, int]:
            module = self._library.function.Module()
            module.load(code)
            return module, module.get_function("kernel").ptr

        module, handle = made_once(name, compiled, loaded)
        return np.array((self._launcher, id(self._failure), handle), np.int64), module

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Product:
        return self._products().product(result, left, right, added)

    def _products(self) -> Blas:
        if self._blas is None:
            self._blas = Blas(self.queue)
        return self._blas

    def seen(self, array: Any) -> Any:
        COMPILE_QUEUE.catch_up()
        library, memory = self._library, array.memory
        found = library.MemoryPointer(library.UnownedMemory(array.pointer, array.nbytes, memory, self.ordinal), 0)
        return self.functions.ndarray(array.shape, array.dtype, found, array.strides)

    def raising_failures(self) -> AbstractContextManager[Any]:
        library = importlib.import_module("cupyx")
        found: AbstractContextManager[Any] = library.errstate(linalg="raise")
        return found

    def is_seen(self, value: Any) -> bool:
        return isinstance(value, self.functions.ndarray)

    def adopted(self, value: Any) -> tuple[Memory, int]:
        pointer: int = value.data.ptr
        owner = getattr(value.data.mem, "_owner", None)
        return owner if isinstance(owner, PooledMemory) else value.data, pointer

    def synchronize(self) -> None:
        COMPILE_QUEUE.catch_up()
        if HERE.recording is not None:
            SYNCHRONIZATIONS.note("torch.cuda.synchronize")
        self._library.Device(self.ordinal).synchronize()
        self.report_faults()

    def stream(self) -> int:
        COMPILE_QUEUE.catch_up()
        return int(self._current_stream().ptr)

    def queue(self) -> int:
        return int(self._current_stream().ptr)

    def use_stream(self, found: Any) -> None:
        COMPILE_QUEUE.catch_up()
        found.use()
        self.pool.stream_changed()

    def begin_recording(self, stream: int) -> None:
        COMPILE_QUEUE.stop()
        self._products().handle_for(stream)
        # What could harm a recording is refused here, before the library sees it; taking memory is allowed.
        self._runtime.streamBeginCapture(stream, self._runtime.streamCaptureModeRelaxed)

    def end_recording(self, stream: int) -> int:
        return int(self._runtime.streamEndCapture(stream))

    def begin_body(self, flag: int) -> Any:
        if self._condition is None:
            self._condition = self.compile(condition_source())
        here = self._current_stream()
        body = self._bodies.pop() if self._bodies else self._library.Stream(non_blocking=True)
        self._products().handle_for(int(body.ptr))
        begin_body(self._condition, int(here.ptr), int(body.ptr), flag)
        self.use_stream(body)
        return here, body

    def end_body(self, found: Any) -> None:
        here, body = found
        self.use_stream(here)
        self._bodies.append(body)
        self._runtime.streamEndCapture(body.ptr)

    def green_stream(self, count: int) -> GreenStream:
        return GreenStream(self.ordinal, count)

    def instantiate(self, graph: int) -> int:
        return int(self._runtime.graphInstantiate(graph))

    def start_graph(self, executable: int) -> None:
        COMPILE_QUEUE.catch_up()
        self._runtime.graphLaunch(executable, self._current_stream().ptr)

    def draw_graph(self, graph: int, path: str) -> None:
        self._runtime.graphDebugDotPrint(graph, path, 0)

    def forget_graph(self, graph: int) -> None:
        self._runtime.graphDestroy(graph)

    def forget_executable(self, executable: int) -> None:
        self._runtime.graphExecDestroy(executable)

    def faults(self, op: str) -> int:
        if self._faults is None:
            self._faults = Faults(self.host_pool.empty((PLACES, 2), np.int64))
        return self._faults.place_for(op)

    def report_faults(self) -> None:
        if self._faults is not None:
            self._faults.report()

    def identity(self) -> str:
        if self._identity is None:
            found, runtime = self._runtime.getDeviceProperties(self.ordinal), self._runtime
            device = found["name"], found["major"], found["minor"], found["multiProcessorCount"]
            versions = runtime.driverGetVersion(), runtime.runtimeGetVersion(), self.functions.__version__
            self._identity = str((device, versions))
        return self._identity

    def block_threads(self, wanted: int) -> int:
        return wanted

    def resident_threads(self, multiprocessors: int) -> int:
        if self._shares is None:  # the library asks the device for every attribute there is
            found = self._library.Device(self.ordinal).attributes
            self._shares = int(found["MultiProcessorCount"]), int(found["MaxThreadsPerMultiProcessor"])
        count, each = self._shares
        return (multiprocessors or count) * each

    def generation(self) -> int:
        if self._generation is None:
            self._generation = int(self._library.Device(self.ordinal).compute_capability)
        return self._generation


def _address(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


_driver: Driver | None = None


def _allocate_by_driver(nbytes: int) -> Memory:
    return driver().allocate(nbytes)


allocate: Callable[[int], Memory] = _allocate_by_driver
"""Memory of the driver in use, uninitialised: its own method once there is one."""


def in_use() -> Driver | None:
    """The driver in use, if there is one yet."""
    return _driver


def driver() -> Driver:
    """The driver in use."""
    assert _driver is not None, "a device array needs a driver"
    return _driver


def pool() -> Pool:
    """The pool of the driver in use."""
    return driver().pool


def use(found: Driver) -> None:
    """Let `found` be the driver in use, before there is any array."""
    global _driver, allocate
    _driver = found
    allocate = found.allocate
