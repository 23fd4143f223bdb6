"""oneDNN's shared library: where it is, loading it, its engine, its streams and its errors.

Nothing is looked for or loaded before `get` or `available` is first called. The wheel `onednn-cpu-gomp` puts the
library into the environment's `lib` folder. Two variables of the environment are read then: `FLAMBEAU_ONEDNN=0`
switches this backend off, and `FLAMBEAU_ONEDNN_LIBRARY` names the library's file.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...._core.process.locks import new_lock
from ...._core.process.threads import num_threads, offer_team, when_changed
from .constants import (
    CPU,
    INVALID_ARGUMENTS,
    ISA_BFLOAT16,
    ISA_VNNI,
    OUT_OF_MEMORY,
    SCRATCHPAD_USER,
    SIGNATURES,
    STATUS_NAMES,
    STREAM_IN_ORDER,
    UNIMPLEMENTED,
    Version,
)
from .signal_stack import SignalStack
from .warm_up import write_kernels

PACKAGE = "onednn-cpu-gomp"
FILE = "libdnnl.so.3"
MAJOR = 3
_FEW_CORES = 2
_SPINS, _SPINS_ON_FEW_CORES = 20_000, 2_000
"""How often a thread asks for work before it sleeps: for about a millisecond, and for a tenth of one."""

_TYPES = {
    "p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "z": ctypes.c_size_t, "n": ctypes.c_int64,
    "c": ctypes.c_char, "f": ctypes.c_float,
}  # fmt: skip


class Unsupported(Exception):
    """oneDNN is not there, or does not do this, or does it no better than plain code would.

    An answer to the caller, who takes another kernel; users never see it.
    """


class Handle:
    """An object of the library, destroyed with its last reference."""

    __slots__ = ("__weakref__", "_destroy", "value")

    def __init__(self, value: int, destroy: Callable[[int], object]) -> None:
        self.value = value
        self._destroy = destroy

    def __del__(self) -> None:
        if hasattr(self, "_destroy"):  # an interrupt may come before it is there
            self._destroy(self.value)


class Library:
    """The loaded library with one CPU engine.

    `loaded` is what `ctypes.CDLL` returns. Functions are called through `call` and `create`, which turn a status into
    an exception; those that run at every step are attributes.
    """

    def __init__(self, loaded: Any, path: Path) -> None:
        self.path = path
        self._functions: dict[str, Any] = {}
        for name, signature in SIGNATURES.items():
            result, parameters = signature.split(":")
            function = getattr(loaded, name)
            function.restype, function.argtypes = _TYPES[result], [_TYPES[each] for each in parameters]
            self._functions[name.removeprefix("dnnl_")] = function
        version = Version.from_address(self._functions["version"]())
        self.version = (int(version.major), int(version.minor), int(version.patch))
        if self.version[0] != MAJOR:
            raise OSError(f"oneDNN {MAJOR} is needed, but {path} is version {'.'.join(map(str, self.version))}")
        self.execute: Callable[[int, int, int, Any], int] = self._functions["primitive_execute"]
        self.set_data_handle: Callable[[int, int], int] = self._functions["memory_set_data_handle"]
        self.sgemm: Callable[..., int] = self._functions["sgemm"]
        self.isa: int = self.ask("get_effective_cpu_isa")
        self.threads, self._set_threads = _thread_settings(loaded)
        self.ask_threads = getattr(loaded, "omp_get_max_threads", None)
        """The C function behind `threads`; None: there is none."""
        self.tell_threads = _address(loaded, "omp_set_num_threads")
        """The address of that behind `set_threads`; 0: there is none."""
        team = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
        self.team = tuple([_address(loaded, each) for each in team])
        """What `offer_team` takes."""
        self.engine = self.create("engine_create", "engine_destroy", CPU, 0)
        self.attributes = self.create("primitive_attr_create", "primitive_attr_destroy")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes.value, SCRATCHPAD_USER)
        self._local = threading.local()
        self._is_forked = False

    def call(self, name: str, *args: Any) -> None:
        """Call a function that returns a status."""
        status = self._functions[name](*args)
        if status:
            self.fail(name, status)

    def ask(self, name: str, *args: Any) -> Any:
        """Call a function that returns a value."""
        return self._functions[name](*args)

    def create(self, name: str, destroy: str, *args: Any) -> Handle:
        """Call a function that makes an object and stores it where its first parameter points."""
        place = ctypes.c_void_p()
        self.call(name, ctypes.byref(place), *args)
        assert place.value is not None
        return Handle(place.value, self._functions[destroy])

    def fail(self, name: str, status: int) -> None:
        """Raise the exception for a status: what the library does not do is the caller's cue to take another kernel."""
        text = f"oneDNN's {name}: {STATUS_NAMES.get(status, f'status {status}')}"
        if status == OUT_OF_MEMORY:
            raise MemoryError(text)
        if status in (UNIMPLEMENTED, INVALID_ARGUMENTS):
            raise Unsupported(text)
        raise RuntimeError(text)

    def stream(self) -> int:
        """The calling thread's stream."""
        try:
            handle: int = self._local.stream.value
            return handle
        except AttributeError:
            self._local.signal_stack = SignalStack()
            self.set_threads(num_threads())  # OpenMP has a number of its own for each thread that calls it
            stream = self._local.stream = self.new_stream()
            return stream.value

    def new_stream(self) -> Handle:
        """A stream, for one thread at a time."""
        return self.create("stream_create", "stream_destroy", self.engine.value, STREAM_IN_ORDER)

    @property
    def multiplies_bytes_exactly(self) -> bool:
        """Whether products of 8-bit integers are exact: older processors of this kind add pairs up in 16 bits, and what
        does not fit there is cut off.
        """
        return platform.machine().lower() not in ("x86_64", "amd64") or bool(self.isa & ISA_VNNI)

    @property
    def multiplies_bfloat16(self) -> bool:
        """Whether the processor has instructions for products of bfloat16; else those of float32 are quicker."""
        return bool(self.isa & ISA_BFLOAT16)

    def set_threads(self, count: int) -> None:
        """How many threads the calling thread's primitives use from now on."""
        if count < 1:
            raise ValueError(f"expected a positive number of threads, but got {count}")
        self._set_threads(1 if self._is_forked else count)

    def after_fork(self) -> None:
        """A child has none of its parent's worker threads, and the OpenMP runtime would wait for them forever."""
        self._is_forked = True
        self._set_threads(1)


def _thread_settings(loaded: Any) -> tuple[Callable[[], int], Callable[[int], object]]:
    """OpenMP's questions, from the runtime that the library is linked with: looking a name up in a library also looks
    into those that it needs.
    """
    try:
        ask, tell = loaded.omp_get_max_threads, loaded.omp_set_num_threads
    except AttributeError:  # built for another runtime, or for none
        return (lambda: 0), (lambda count: None)
    ask.restype, ask.argtypes = ctypes.c_int, []
    tell.restype, tell.argtypes = None, [ctypes.c_int]
    return ask, tell


def _address(loaded: Any, name: str) -> int:
    """Where a function begins; 0: there is none."""
    return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0 if hasattr(loaded, name) else 0


def find() -> Path | None:
    """The library's file, or None where the package is not installed."""
    named = os.environ.get("FLAMBEAU_ONEDNN_LIBRARY")
    if named:
        return Path(named)
    usual = Path(sys.prefix, "lib", FILE)
    return usual if usual.is_file() else _listed_file()


def _listed_file() -> Path | None:
    """The library among the files that the package's own list names: it may be installed elsewhere."""
    from importlib import metadata  # costs 20 ms, which only those pay who have no file in the usual place

    try:
        files = metadata.files(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    places = [Path(str(file.locate())) for file in files or () if file.name == FILE]
    return next((place for place in places if place.is_file()), None)


def _loaded(path: Path) -> Any:
    """The library at a path, whose threads wait as briefly as suits ops that follow one another.

    OpenMP's runtime reads how long its threads spin before they sleep when it is loaded: some 15 ms if nobody says
    otherwise. All that time they keep processors from others: on two cores, beside another process that computes, a
    training step took ten times as long. To wake many threads takes longer than a small op: with 16 of them, networks
    of timm took a tenth longer when their threads slept between the ops.
    """
    if any(name in os.environ for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
        return ctypes.CDLL(str(path))
    os.environ["GOMP_SPINCOUNT"] = str(_SPINS if num_threads() > _FEW_CORES else _SPINS_ON_FEW_CORES)
    try:
        return ctypes.CDLL(str(path))
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def load() -> Library:
    """Find and load the library, or say in `Unsupported` why it cannot be had."""
    if os.environ.get("FLAMBEAU_ONEDNN") == "0":
        raise Unsupported("oneDNN is switched off by FLAMBEAU_ONEDNN=0")
    path = find()
    if path is None:
        raise Unsupported(f"oneDNN is not installed (package {PACKAGE})")
    try:
        return Library(_loaded(path), path)
    except (OSError, AttributeError) as error:  # not a library, for another machine, or not the expected one
        raise Unsupported(f"oneDNN cannot be loaded: {error}") from error


class _Loaded:
    """The one library of the process, and why there is none."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.library: Library | None = None
        self.reason: str | None = None

    def get(self) -> Library:
        with self.lock:
            if self.library is None and self.reason is None:
                try:
                    self.library = load()
                except Unsupported as error:
                    self.reason = str(error)
                else:
                    when_changed(self.library.set_threads)
                    offer_team(*self.library.team)
                    if hasattr(os, "register_at_fork"):
                        os.register_at_fork(after_in_child=self.library.after_fork)
                    write_kernels(self.library)
            if self.library is None:
                raise Unsupported(self.reason)
            return self.library


_LOADED = _Loaded()


def get() -> Library:
    """The library, loaded at the first call; `Unsupported` where it is not to be had."""
    return _LOADED.library or _LOADED.get()


def available() -> bool:
    """Whether the library is there and not switched off."""
    return reason() is None


def reason() -> str | None:
    """Why the library cannot be used, or None if it can."""
    try:
        get()
    except Unsupported as error:
        return str(error)
    return None


def version() -> str:
    """The library's version, such as "3.2.0"."""
    return ".".join(map(str, get().version))


def set_num_threads(count: int) -> None:
    """How many threads the calling thread's kernels use from now on."""
    get().set_threads(count)
