"""Compile the suite's CUDA kernels for every generation of GPUs, without a GPU.

    pytest -p tests.support.simulated_device_plugin tests/cuda/on_device     # keeps the source of every kernel
    pip download --no-deps nvidia-cuda-nvrtc-cu11 nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvrtc    # and unpack them
    python -m tools.nvrtc libnvrtc.so.11.2 libnvrtc.so.12 libnvrtc.so.13

Each architecture is compiled by the newest of the libraries that knows it. The sources are those that the simulated
device has kept; several go to the compiler at once, since most of the time goes into what stands before each. The exit
code is 1 if a kernel does not compile.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flambeau._codegen.cuda.elementwise import functions

ARCHITECTURES = (50, 60, 70, 80, 90, 120)
OPTIONS = ("--std=c++17", "-ftz=true")
AT_ONCE = 24
_RUN_ON_HOST = '\nextern "C" void run('
_TOGETHER = "\nstatic ucontext_t scheduler;"
_KERNELS_SIDE_BY_SIDE = """
#undef KERNEL
#undef KERNEL_OF
#define KERNEL __global__ void
#define KERNEL_OF(...) __global__ void __launch_bounds__(__VA_ARGS__)
"""


class Compiler:
    """One of NVIDIA's run-time compilers."""

    def __init__(self, path: str) -> None:
        folder = Path(path).resolve().parent
        for builtins in sorted(folder.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(known)
        self.architectures = frozenset(known)

    def compile(self, source: str, architecture: int) -> str:
        """Machine code for an architecture; what the compiler says if it fails, else nothing."""
        program = ctypes.c_void_p()
        self._library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        options = [each.encode() for each in (*OPTIONS, f"--gpu-architecture=sm_{architecture}", "-w")]
        status = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        said = ""
        if status:
            size = ctypes.c_size_t()
            self._library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self._library.nvrtcGetProgramLog(program, log)
            said = log.value.decode() or f"status {status}"
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return said


def kernels(folder: Path) -> list[str]:
    """The sources that the simulated device has kept, each without the functions that stand before all of them."""
    found = set()
    for path in folder.glob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        found.add(text.partition(_TOGETHER)[0].partition(_RUN_ON_HOST)[0])
    return sorted(text for text in found if "KERNEL" in text)


def _batches(sources: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(sources), AT_ONCE):
        yield sources[start : start + AT_ONCE]


def failures(compiler: Compiler, architecture: int, sources: Sequence[str]) -> list[tuple[str, str]]:
    """The kernels that do not compile, with what the compiler says."""
    before, found = functions(), list[tuple[str, str]]()
    for batch in _batches(sources):
        spaces = [f"namespace kernel{number} {{\n{source}\n}}\n" for number, source in enumerate(batch)]
        if not compiler.compile(before + _KERNELS_SIDE_BY_SIDE + "".join(spaces), architecture):
            continue
        each = [(source, compiler.compile(before + source, architecture)) for source in batch]
        found.extend(pair for pair in each if pair[1])
    return found


def main() -> int:
    """Compile, and print a line for each architecture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+", help="paths of libnvrtc.so, one for each version")
    parser.add_argument("--only", type=int, action="append", help="an architecture, such as 70")
    parser.add_argument("--sample", type=int, help="so many kernels, chosen at random, instead of all")
    place = Path(os.environ.get("FLAMBEAU_SIMULATED_CUDA", tempfile.gettempdir())) / "flambeau-simulated-cuda"
    parser.add_argument("--sources", type=Path, default=place, help="the folder of the simulated device")
    given = parser.parse_args()
    compilers = sorted((Compiler(path) for path in given.libraries), key=lambda each: each.version, reverse=True)
    sources = kernels(given.sources)
    if given.sample is not None:
        sources = random.Random(0).sample(sources, min(given.sample, len(sources)))
    failed = not sources
    for architecture in given.only or ARCHITECTURES:
        compiler = next((each for each in compilers if architecture in each.architectures), None)
        if compiler is None:
            print(f"sm_{architecture}: none of these libraries knows it")
            failed = True
            continue
        start = time.perf_counter()
        found = failures(compiler, architecture, sources)
        version = ".".join(map(str, compiler.version))
        taken = time.perf_counter() - start
        print(
            f"sm_{architecture} by {version}: {len(sources) - len(found)} of {len(sources)} in {taken:.0f} s",
            flush=True,
        )
        for source, said in found[:3]:
            print(source, said, sep="\n")
        failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
