"""Memory that runs out at a chosen place: allocation n of a piece of code fails, on the device or on the host."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from flambeau._backends.cuda.memory.pool import Pool
from tests.support import allocations
from tests.support.simulated_cuda import SimulatedDriver


class Failing:
    """Counts allocations; the one with the number `place` fails (counted from 0; None: none does)."""

    def __init__(self, place: int | None) -> None:
        self.place = place
        self.count = 0
        self.asked: int | None = None
        """The bytes of the request that failed."""

    def is_due(self) -> bool:
        """Whether the present request is the one to fail."""
        due = self.count == self.place
        self.count += 1
        return due


@contextmanager
def device_allocation_fails(pool: Pool, place: int | None) -> Iterator[Failing]:
    """A context in which a request of a pool of device memory fails as where the device has none left."""
    failing, found, special = Failing(place), pool._found, pool._do_special
    before = pool._patience

    def nothing(nbytes: int) -> Any:
        pool._here.stand = None
        vars(pool)["_found"] = found
        failing.asked = nbytes
        pool.statistics.failures += 1
        raise pool._exhausted(nbytes, pool)

    def look() -> None:
        special()
        pool._patience = -1
        if failing.is_due():
            pool._here.homes = {}
            vars(pool)["_found"] = nothing

    vars(pool)["_do_special"] = look
    pool._patience = -1
    try:
        yield failing
    finally:
        for name in ("_do_special", "_found"):
            vars(pool).pop(name, None)
        pool._patience = before


_HANDLER = """
#include <stdlib.h>
static long count, place, asked;
static int fails(size_t size) { if (count++ != place) return 0; asked = (long)size; return 1; }
static void* get(void* context, size_t size) { return fails(size) ? 0 : malloc(size); }
static void* get_zeros(void* context, size_t n, size_t size) { return fails(n * size) ? 0 : calloc(n, size); }
static void* get_other(void* context, void* old, size_t size) { return realloc(old, size); }
static void give(void* context, void* memory, size_t size) { free(memory); }
static struct {
  char name[127]; unsigned char version; void* context; void* functions[4];
} handler = {"failing", 1, 0, {(void*)get, (void*)get_zeros, (void*)get_other, (void*)give}};
extern "C" void* start(long n) { count = 0; place = n; asked = -1; return &handler; }
extern "C" long counted(void) { return count; }
extern "C" long refused(void) { return asked; }
"""


@cache
def _library() -> Any:
    """The handler of NumPy's memory in C: a function of Python's could not be called while an error is raised."""
    made = SimulatedDriver()._made(_HANDLER, ".cpp", ".so", "-O1", "-fPIC", "-shared")
    library = ctypes.CDLL(str(made))
    library.start.restype, library.start.argtypes = ctypes.c_void_p, [ctypes.c_long]
    library.counted.restype = library.refused.restype = ctypes.c_long
    return library


@contextmanager
def host_allocation_fails(place: int | None) -> Iterator[Failing]:
    """A context in which NumPy gets no memory for a request, counted from 0, in this thread."""
    failing, library = Failing(place), _library()
    capsule = allocations._new_capsule(library.start(-1 if place is None else place), allocations._CAPSULE_NAME, None)
    before = allocations._set_handler(capsule)
    try:
        yield failing
    finally:
        allocations._set_handler(before)
        failing.count, failing.asked = library.counted(), library.refused()
