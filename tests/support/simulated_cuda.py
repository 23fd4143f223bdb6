"""A driver whose device memory is the host's: the CUDA backend runs on it where there is no GPU.

Generated kernels are compiled by the C++ compiler of the machine, their threads run one after the other, or together
where a test asks for it; what the real driver leaves to its library is NumPy's. So numbers, layouts and dispatch are
those of the GPU, and nothing else is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._backends.cuda.driver import Launch, use
from flambeau._core.backend import backend_of, is_installed

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


_TOGETHER = """
#include <ucontext.h>
#include <vector>
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


class HostMemory:
    """Host memory that plays a device's."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = np.empty(max(nbytes, 1) + 512, np.uint8)
        start = self.bytes.ctypes.data
        self.ptr = start + -start % 512


class SimulatedDriver:
    """The host as a device."""

    functions = np
    pool = None

    def __init__(self) -> None:
        self.folder = Path(os.environ.get("FLAMBEAU_SIMULATED_CUDA", tempfile.gettempdir())) / "flambeau-simulated-cuda"
        self._faults = np.zeros(2, np.int64)
        self.together = False
        """Whether threads of a block that wait for each other are simulated, or a block has only one."""
        self.folder.mkdir(exist_ok=True, parents=True)

    def allocate(self, nbytes: int) -> HostMemory:
        return HostMemory(nbytes)

    def upload(self, pointer: int, host: Any) -> None:
        ctypes.memmove(pointer, host.__array_interface__["data"][0], host.nbytes)

    def download(self, host: Any, pointer: int) -> None:
        ctypes.memmove(host.__array_interface__["data"][0], pointer, host.nbytes)
        if self._faults[0]:
            self._faults[:] = 0
            raise IndexError("Target is out of bounds.")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def clear(self, pointer: int, nbytes: int) -> None:
        ctypes.memset(pointer, 0, nbytes)

    def compile(self, source: str) -> Launch:
        source += _TOGETHER if self.together else _LOOP
        name = self.folder / f"{hashlib.sha256(source.encode()).hexdigest()}.so"
        if not name.exists():
            assert COMPILER is not None
            made = name.with_suffix(f".{os.getpid()}.so")
            command = [
                COMPILER,
                "-x",
                "c++",
                "-std=c++17",
                "-O0" if self.together else "-O1",
                "-ffp-contract=off",
                "-fno-strict-aliasing",
            ]
            done = subprocess.run(
                [*command, "-w", "-shared", "-fPIC", "-o", str(made), "-"], input=source, text=True, check=False,
                capture_output=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr + source.partition("struct Arguments")[2]
            made.rename(name)
        library = ctypes.CDLL(str(name))
        run = library.run
        run.argtypes = [ctypes.c_longlong, ctypes.c_longlong, ctypes.c_char_p]
        return lambda blocks, threads, fields: run(blocks, threads, fields)

    def multiply(self, result: Any, left: Any, right: Any) -> None:
        wide = np.float32 if left.dtype.itemsize == 2 else left.dtype
        left, right = (self.seen_any(each).astype(wide) for each in (left, right))
        self.seen_any(result)[...] = np.matmul(left, right).astype(result.dtype)

    def seen_any(self, array: Any) -> Any:
        """`seen`, for the dtypes too that NumPy has of another package."""
        return (
            self.seen(array.view(np.uint16)).view(array.dtype) if array.dtype.name == "bfloat16" else self.seen(array)
        )

    def seen(self, array: Any) -> Any:
        return np.asarray(_Window(array))

    def is_seen(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic))

    def adopted(self, value: Any) -> tuple[HostMemory, int]:
        if isinstance(value, np.generic) or not value.flags.owndata:
            value = np.array(value, order="K")
        memory = HostMemory(0)
        memory.bytes = value
        memory.ptr = value.__array_interface__["data"][0]
        return memory, memory.ptr

    def synchronize(self) -> None:
        pass

    def stream(self) -> int:
        return 0

    def faults(self) -> int:
        return int(self._faults.ctypes.data)

    def block_threads(self, wanted: int) -> int:
        return wanted if self.together else 1

    def resident_threads(self) -> int:
        return 132 * 2048


class _Window:
    """The memory of a device array for NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = {
            "version": 3, "typestr": array.dtype.str, "shape": array.shape, "strides": array.strides,
            "data": (array.pointer, False),
        }  # fmt: skip


def install_simulated_device() -> Any:
    """Have the device, and give its backend; more than once is once."""
    if is_installed("cuda"):
        return backend_of("cuda")
    use(SimulatedDriver())
    from flambeau._backends.cuda.backend import install_backend

    return install_backend()
