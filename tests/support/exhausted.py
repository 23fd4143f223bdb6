"""Memory that runs out at a chosen place: allocation n of a piece of code fails, on the device or on the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._backends.cuda.memory.pool import Pool
from tests.support import allocations


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


@contextmanager
def host_allocation_fails(place: int | None, least: int = 0) -> Iterator[Failing]:
    """A context in which NumPy gets no memory for a request of at least so many bytes, in this thread."""
    failing = Failing(place)

    def refuses(size: int) -> bool:
        if size < least or not failing.is_due():
            return False
        failing.asked = size
        return True

    with allocations.refused_allocations(refuses):
        yield failing
