"""Processes of one machine exchange through shared memory: the bits of connections, and nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed._mesh.arena import IS_AVAILABLE, Arena
from flambeau.distributed.testing import run_in_threads
from flambeau.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="needs files in memory")
MINUTES = timedelta(minutes=4)
SEVERAL_ROUNDS = 2_200_007
"""Elements of four bytes: more than one round, and parts of unequal length."""


def driver() -> Any:
    return dist.group.WORLD._engine._driver


def numbers(count: int, rank: int) -> Any:
    return flambeau.randn(count, generator=flambeau.Generator().manual_seed(rank))


def collectives(rank: int, size: int) -> list[bytes]:
    found = []
    for count in (10_007, SEVERAL_ROUNDS):
        own = numbers(count, rank)
        total, greatest, sent = own.clone(), own.clone(), own.clone()
        dist.all_reduce(total)
        dist.all_reduce(greatest, dist.ReduceOp.MAX)
        dist.broadcast(sent, size - 1)
        gathered, part = flambeau.empty(size * count), flambeau.empty(count)
        dist.all_gather_into_tensor(gathered, own)
        dist.reduce_scatter_tensor(part, gathered + rank)
        # Parts of three lengths: one of several rounds, and some so short that they are sent.
        lengths = [[(0, count, 7, 10_007)[(one + other) % 4] for other in range(size)] for one in range(size)]
        exchanged = flambeau.empty(sum(row[rank] for row in lengths))
        dist.all_to_all_single(
            exchanged, own.repeat(3)[: sum(lengths[rank])], [row[rank] for row in lengths], lengths[rank]
        )
        found += [each.numpy().tobytes() for each in (total, greatest, sent, gathered, part, exchanged)]
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_the_bits_are_those_of_connections(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(rank: int) -> tuple[bool, list[bytes]]:
        return len(driver().memories) == size - 1, collectives(rank, size)

    shared = run_in_threads(work, size, MINUTES)
    monkeypatch.setenv("FLAMBEAU_SHARED_MEMORY", "0")
    sent = run_in_threads(work, size, MINUTES)
    assert [is_shared for is_shared, _ in shared + sent] == [True] * size + [False] * size
    assert [values for _, values in shared] == [values for _, values in sent]
    assert len({values[0] for _, values in shared}) == 1


def test_memory_that_nobody_changes_is_read_where_it_is() -> None:
    """It is held until all have read it, though the call is over before; then it is taken again."""
    size, count = 3, 20_000

    def work(rank: int) -> int:
        engine: Any = dist.group.WORLD._engine
        for step in range(5):
            rows = engine.empty(size * count, np.dtype(np.float32), passing=True).reshape(size, count)
            rows[:] = 10 * step + rank
            total, parts = np.empty(count, np.float32), [np.empty(count, np.float32) for _ in range(size)]
            adding = engine.reduce_scatter(total, list(rows), dist.ReduceOp.SUM)
            own = engine.empty(count, np.dtype(np.float32), passing=True)
            own[:] = 100 * step + rank
            gathering = engine.all_gather(parts, own)
            del rows, own
            adding.wait()
            gathering.wait()
            assert (total == size * 10 * step + 3).all()
            for other, part in enumerate(parts):
                assert (part == 100 * step + other).all()
        dist.barrier()
        assert not any(link.arrived for link in driver().links.values())  # no note is left over
        return len(driver().arena._extents)

    assert max(run_in_threads(work, size, MINUTES)) <= 6


def test_some_have_no_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group in which one process is elsewhere talks over connections, and a group of the others does not."""
    from flambeau.distributed._mesh import connect

    machines = iter(["here", "here", "there"])
    monkeypatch.setattr(connect, "_machine", lambda: next(machines))

    def work(rank: int) -> tuple[int, list[bytes]]:
        return len(driver().memories), collectives(rank, 3)

    results = run_in_threads(work, 3, MINUTES)
    assert sorted(count for count, _ in results) == [0, 1, 1]
    assert len({values[0] for _, values in results}) == 1


@pytest.mark.parametrize(("one", "other"), [(20_000, 20_001), (20_000, 8), (8, 20_000)])
def test_different_lengths_are_an_error_on_every_rank(one: int, other: int) -> None:
    def call(rank: int) -> None:
        dist.all_reduce(flambeau.ones(other if rank else one))
        dist.barrier()  # who sends a few elements hears only now that the other one expected many

    def work(rank: int) -> str:
        with pytest.raises(dist.DistBackendError) as raised:
            call(rank)
        return str(raised.value)

    texts = run_in_threads(work, 2, MINUTES)
    assert all("do different things" in text for text in texts), texts
    assert all("test_shared_memory.py" in text for text in texts)


def test_buckets_are_in_shared_memory_and_give_it_back() -> None:
    def work(rank: int) -> tuple[bool, bool]:
        arena = driver().arena
        model = DistributedDataParallel(flambeau.nn.Linear(100, 100), gradient_as_bucket_view=True)
        model(flambeau.full((1, 100), rank + 1.0)).sum().backward()
        gradient = model.module.weight.grad
        is_shared = arena.place_of(gradient._array) is not None
        assert gradient.tolist() == [[1.5] * 100] * 100
        del model, gradient
        until = time.monotonic() + 60
        while not any(arena._free.values()) and time.monotonic() < until:
            gc.collect()  # which does nothing while another thread does it
            time.sleep(0.01)
        return is_shared, any(arena._free.values())

    assert run_in_threads(work, 2, MINUTES) == [(True, True)] * 2


def test_arrays_may_end_while_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is collected anywhere: in the middle of taking memory, in the thread that takes it."""
    arena = Arena()
    ending = [arena.array(10, np.dtype(np.float32))]
    mapped = mmap.mmap

    def mapping(*args: Any, **options: Any) -> mmap.mmap:
        ending.clear()
        return mapped(*args, **options)

    monkeypatch.setattr("flambeau.distributed._mesh.arena.mmap.mmap", mapping)
    taking = threading.Thread(target=arena.take, args=(1 << 20,), daemon=True)
    taking.start()
    taking.join(30)
    assert not taking.is_alive()
    arena.close()


def test_memory_is_taken_again_when_nobody_looks_at_it() -> None:
    arena = Arena()
    first = arena.array(1000, np.dtype("float32"))
    first[:] = 7
    part = first[10:20].reshape(2, 5)
    place = arena.place_of(part)
    assert place is not None
    assert place.start == 40
    assert arena.place_of(np.empty(3)) is None
    del first
    assert arena.array(1000, np.dtype("float32")).base is not part.base
    assert part.tolist() == [[7.0] * 5] * 2
    del part
    assert arena.place_of(arena.array(10, np.dtype("float64"))) == place._replace(start=0, length=80)
    arena.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at the descriptors of this process")
def test_nothing_is_left_open() -> None:
    def open_files() -> int:
        found = 0
        for each in list(Path("/proc/self/fd").iterdir()):
            with contextlib.suppress(OSError):  # the other thread may have closed it
                found += "memfd:flambeau" in os.readlink(each)
        return found

    before = open_files()
    assert run_in_threads(lambda rank: open_files() > before, 2, MINUTES) == [True, True]
    assert open_files() == before


def test_one_has_its_array_in_the_arena_and_the_other_elsewhere() -> None:
    def work(rank: int) -> bool:
        values = numbers(SEVERAL_ROUNDS, rank)
        if rank:
            placed = driver().arena.array(SEVERAL_ROUNDS, np.dtype("float32"))
            placed[:] = values.numpy()
            values = flambeau.from_numpy(placed)
        dist.all_reduce(values)
        return values.equal(numbers(SEVERAL_ROUNDS, 0) + numbers(SEVERAL_ROUNDS, 1))

    assert run_in_threads(work, 2, MINUTES) == [True, True]
