"""A driver whose device memory is the host's: the CUDA backend runs on it where there is no GPU.

Generated kernels are compiled by the C++ compiler of the machine, their threads run one after the other, or together
where a test asks for it; what the real driver leaves to its library is NumPy's. So numbers, layouts and dispatch are
those of the GPU, and nothing else is.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau._backends.cuda.arrays.array import over
from flambeau._backends.cuda.memory.host import HostPool, pinned_memory
from flambeau._backends.cuda.memory.pool import Pool, exhausted
from flambeau._backends.cuda.runtime.compile_queue import COMPILE_QUEUE
from flambeau._backends.cuda.runtime.driver import Launch
from flambeau._backends.cuda.runtime.index_errors import PLACES, Faults
from flambeau._backends.cuda.runtime.synchronization import HERE, SYNCHRONIZATIONS
from flambeau._codegen.cuda.elementwise import functions
from flambeau._core.backend import backend_of, is_installed
from tests.support import simulated_library

CAPACITY = 4 << 30
COMPILER = shutil.which("g++")
_LOOP = """
extern "C" void run(i64 blocks, i64 threads, const Arguments* arguments) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (i64 block = 0; block < blocks; block++)
    for (i64 thread = 0; thread < threads; thread++) {
      blockIdx.x = block;
      threadIdx.x = thread;
      kernel(*arguments);
    }
}
"""


_LIBRARIES_OF_TOGETHER = """
#include <ucontext.h>
#include <vector>
"""
_TOGETHER = """
static ucontext_t scheduler;
static std::vector<ucontext_t> places;
static std::vector<char> finished;
static const Arguments* given;
static void run_thread() { kernel(*given); finished[threadIdx.x] = 1; }
extern "C" void run(i64 blocks, i64 threads, const Arguments* arguments) {
  static std::vector<char> stacks;
  const size_t room = 1 << 16;
  stacks.resize(threads * room);
  given = arguments;
  gridDim.x = blocks;
  blockDim.x = threads;
  other_threads = [] { swapcontext(&places[threadIdx.x], &scheduler); };
  for (i64 block = 0; block < blocks; block++) {
    blockIdx.x = block;
    places.assign(threads, ucontext_t());
    finished.assign(threads, 0);
    for (i64 thread = 0; thread < threads; thread++) {
      getcontext(&places[thread]);
      places[thread].uc_stack.ss_sp = &stacks[thread * room];
      places[thread].uc_stack.ss_size = room;
      places[thread].uc_link = &scheduler;
      makecontext(&places[thread], run_thread, 0);
    }
    for (bool going = true; going;) {
      going = false;
      for (i64 thread = 0; thread < threads; thread++) {
        if (finished[thread]) continue;
        threadIdx.x = thread;
        swapcontext(&scheduler, &places[thread]);
        going |= !finished[thread];
      }
    }
  }
}
"""
"""The threads of a block run together: each goes on until it waits for the others, then they do."""


class _Adopted:
    """An array of NumPy's that plays a device's memory."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.ptr: int = _address(array)
        self.ordinal = HERE.ordinal

    # As where memory is given back to a device: what is to be started may be about it. No function of this file's, as
    # compiled functions would have to know where that came from.
    __del__ = staticmethod(COMPILE_QUEUE.catch_up)


class _Anywhere:
    """Stands for memory that others keep alive."""

    ptr = 0


_ANYWHERE = _Anywhere()


class SimulatedDriver:
    """The host as a device; `all_devices`: those of its machine, which it is one of where there are several."""

    def __init__(self, ordinal: int = 0, all_devices: list[SimulatedDriver] | None = None) -> None:
        self.ordinal = ordinal
        self._all = [self] if all_devices is None else all_devices
        self.copies_from_peers = 0
        self.folder = Path(os.environ.get("FLAMBEAU_SIMULATED_CUDA", tempfile.gettempdir())) / "flambeau-simulated-cuda"
        self.together = False
        """Whether threads of a block that wait for each other are simulated, or a block has only one."""
        self.folder.mkdir(exist_ok=True, parents=True)
        self.functions: Any = np
        self.supplier = simulated_library.HostSupplier(CAPACITY)
        self.pool = Pool(self.supplier, exhausted, ordinal)
        self.pool.space = self.supplier
        self.host_pool = HostPool(self.supplier)
        self.allocate = self.pool.allocate
        self._faults = Faults(self.host_pool.empty((PLACES, 2), np.int64))
        self._recorder = simulated_library.Recorder()

    @property
    def library(self) -> Any:
        COMPILE_QUEUE.catch_up()
        return simulated_library

    def _check(self, *pointers: int) -> None:
        """Find work that is about the memory of one device and given to another: a real one would fail, or be wrong."""
        if len(self._all) < 2:
            return
        assert self.ordinal == HERE.ordinal, f"a thread on cuda:{HERE.ordinal} calls for cuda:{self.ordinal}"
        for other in self._all:
            if other is not self:
                for pointer in pointers:
                    assert not other.supplier.has(pointer), f"cuda:{self.ordinal} was given memory of {other.ordinal}"

    def copy_from(self, peer: Any, target: int, source: int, nbytes: int) -> None:
        COMPILE_QUEUE.catch_up()
        assert self.supplier.has(target)
        self._check(target)
        self.copies_from_peers += 1
        self._recorder(lambda: ctypes.memmove(target, source, nbytes))

    def can_read(self, ordinal: int) -> bool:
        return ordinal != self.ordinal

    def enter(self) -> None:
        assert HERE.ordinal == self.ordinal

    def _do(self, step: Callable[[], Any]) -> None:
        if COMPILE_QUEUE.steps is None or HERE.recording is not None:
            self._recorder(step)
        else:
            COMPILE_QUEUE.start(self._recorder, step)

    def upload(self, pointer: int, host: Any) -> None:
        COMPILE_QUEUE.catch_up()
        self._check(pointer)
        if HERE.recording is not None and pinned_memory(host) is None:
            host = host.copy("K")
        self._recorder(lambda: ctypes.memmove(pointer, _address(host), host.nbytes))
        if HERE.recording is None and pinned_memory(host) is not None and not HERE.goes_on:
            SYNCHRONIZATIONS.note("a copy from pinned memory without non_blocking=True")

    def download(self, host: Any, pointer: int) -> None:
        COMPILE_QUEUE.catch_up()
        self._check(pointer)
        goes_on = pinned_memory(host) is not None and (HERE.goes_on or HERE.recording is not None)
        if not goes_on:
            SYNCHRONIZATIONS.note("reading a tensor's elements")
        self._recorder(lambda: ctypes.memmove(_address(host), pointer, host.nbytes))
        if not goes_on:
            self.report_faults()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._check(target, source)
        self._do(lambda: ctypes.memmove(target, source, nbytes))

    def clear(self, pointer: int, nbytes: int) -> None:
        self._check(pointer)
        self._do(lambda: ctypes.memset(pointer, 0, nbytes))

    def compile(self, source: str) -> Launch:
        run = COMPILE_QUEUE.compiled(partial(self._run_of, source))

        def launch(blocks: int, threads: int, fields: bytes) -> None:
            if len(self._all) > 1:  # every number that could be an address
                self._check(*np.frombuffer(fields[: len(fields) // 8 * 8], np.uint64).tolist())
            self._do(lambda: run()(blocks, threads, fields))

        return launch

    def _run_of(self, source: str) -> Any:
        """What runs the kernel of a source."""
        start = functions()
        rest = source.removeprefix(start) + (_TOGETHER if self.together else _LOOP)
        start = (start if source.startswith(start) else "") + (_LIBRARIES_OF_TOGETHER if self.together else "")
        level = "-O0" if self.together else "-O1"
        options = ("-std=c++17", level, "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC")
        library = self._made(rest, ".cpp", ".so", *options, "-shared", "-include", str(self._header(start, options)))
        run = ctypes.CDLL(str(library)).run
        run.argtypes = [ctypes.c_longlong, ctypes.c_longlong, ctypes.c_char_p]
        return run

    def _header(self, text: str, options: tuple[str, ...]) -> Path:
        """A header with what stands before many kernels, and beside it what the compiler takes in its place."""
        return self._made(text, ".h", ".h.gch", *options).with_suffix("")

    def _made(self, text: str, source_suffix: str, suffix: str, *options: str) -> Path:
        """What the compiler makes of a source with these options; both are kept for later processes."""
        assert COMPILER is not None
        command = [COMPILER, *options, "-w"]
        name = hashlib.sha256("\n".join([*command, text]).encode()).hexdigest()
        made = self.folder / (name + suffix)
        if not made.exists():
            source = self.folder / (name + source_suffix)
            with _in_place_of(source) as written:
                written.write_text(text, encoding="utf-8")
            with _in_place_of(made) as written:
                done = subprocess.run([*command, "-o", written, source], check=False, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr + text
        return made

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Any:
        wide = np.float32 if left.dtype.itemsize == 2 else left.dtype

        def multiply(*pointers: int) -> None:
            self._check(*pointers)
            forms = zip((result, left, right), pointers, strict=True)
            target, first, second = (self._window(over(_ANYWHERE, place, *_layout(form))) for form, place in forms)

            def step() -> None:
                found = np.matmul(first.astype(wide), second.astype(wide))
                target[...] = (found + target if added else found).astype(target.dtype)

            self._do(step)

        return multiply

    def _window(self, array: Any) -> Any:
        """The memory of an array for NumPy, for the dtypes too that it has of another package."""
        if array.dtype.name == "bfloat16":
            return np.asarray(_Window(array.view(np.uint16))).view(array.dtype)
        return np.asarray(_Window(array))

    def seen(self, array: Any) -> Any:
        COMPILE_QUEUE.catch_up()
        self._check(array.pointer)
        if HERE.recording is not None:
            raise NotImplementedError("the simulated device records its own kernels alone, not those of a library")
        return self._window(array)

    def raising_failures(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def is_seen(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic))

    def adopted(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, np.generic) or not value.flags.owndata:
            value = np.array(value, order="K")
        memory = _Adopted(value)
        return memory, memory.ptr

    def synchronize(self) -> None:
        COMPILE_QUEUE.catch_up()
        if HERE.recording is not None:
            SYNCHRONIZATIONS.note("torch.cuda.synchronize")
        self.report_faults()

    def report_faults(self) -> None:
        self._faults.report()

    def stream(self) -> int:
        COMPILE_QUEUE.catch_up()
        return simulated_library.get_current_stream().ptr

    def queue(self) -> int:
        return simulated_library.get_current_stream().ptr

    def use_stream(self, found: Any) -> None:
        COMPILE_QUEUE.catch_up()
        found.use()
        self.pool.stream_changed()

    def begin_recording(self, stream: int) -> None:
        COMPILE_QUEUE.stop()
        self._recorder.steps = []

    def end_recording(self, stream: int) -> Any:
        steps, self._recorder.steps = self._recorder.steps, None
        return steps

    def begin_body(self, flag: int) -> Any:
        self._check(flag)
        outside, self._recorder.steps = self._recorder.steps, []
        return outside, flag

    def end_body(self, found: Any) -> None:
        outside, flag = found
        body, self._recorder.steps = self._recorder.steps, outside

        def step() -> None:
            if ctypes.c_uint8.from_address(flag).value:
                for each in body or ():
                    each()

        self._recorder(step)

    def green_stream(self, count: int) -> Any:
        if count > 4:
            raise RuntimeError(f"GPU {self.ordinal} has 4 multiprocessors: num_sms={count} is too many")
        return SimpleNamespace(handle=simulated_library.Stream().ptr, count=-(-count // 2) * 2)

    def instantiate(self, graph: Any) -> Any:
        return tuple(graph)

    def start_graph(self, executable: Any) -> None:
        COMPILE_QUEUE.catch_up()
        for step in executable:
            step()

    def draw_graph(self, graph: Any, path: str) -> None:
        Path(path).write_text(f"digraph {{ {len(graph)} }}", encoding="utf-8")

    def forget_graph(self, graph: Any) -> None:
        pass

    def forget_executable(self, executable: Any) -> None:
        pass

    def faults(self, op: str) -> int:
        return self._faults.place_for(op)

    def identity(self) -> str:
        return "the host"

    def block_threads(self, wanted: int) -> int:
        return wanted if self.together else 1

    def generation(self) -> int:
        return 90

    def resident_threads(self, multiprocessors: int) -> int:
        return (multiprocessors or 132) * 2048


@contextlib.contextmanager
def _in_place_of(name: Path) -> Iterator[Path]:
    """Where to write a file that then stands there whole at once: other processes may make the same, and use it."""
    written = name.with_name(f"{name.name}.{os.getpid()}.{threading.get_ident()}")
    yield written
    written.rename(name)


def _layout(form: Any) -> tuple[Any, Any, Any]:
    return form.shape, form.dtype, form.strides


def _address(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


class _Window:
    """The memory of a device array for NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = {
            "version": 3, "typestr": array.dtype.str, "shape": array.shape, "strides": array.strides,
            "data": (array.pointer, False),
        }  # fmt: skip


COUNT = "FLAMBEAU_SIMULATED_DEVICES"
"""The environment variable that says how many devices are simulated; one by default."""


def install_simulated_device(count: int = int(os.environ.get(COUNT, "1"))) -> Any:
    """Have the device, or so many of them, and give its backend; more than once is once."""
    if is_installed("cuda"):
        return backend_of("cuda")
    from flambeau._backends.cuda.backend import install_backend

    drivers: list[SimulatedDriver] = []
    drivers += [SimulatedDriver(ordinal, drivers) for ordinal in range(count)]
    return install_backend(drivers)
