"""Sockets, shared memory, allocations and threads of collectives and stores fail in turn, and ranks die in turn.

Each rank ends soon: with the right values, or with an error of a documented type. Nothing stays open or running, and
the next group works.
"""

from __future__ import annotations

import errno
import gc
import itertools
import mmap
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed._mesh import links
from flambeau.distributed._world import World
from flambeau.distributed.testing import run_in_threads

from ..support.faults import ALLOCATIONS, Calls, Target, calls_of, disk_full, no_more_threads

SIZE, VICTIM = 3, 1
PATIENCE = 100.0
"""Seconds that a rank waits for another."""
SOON = 30.0
"""Seconds within which all ranks have ended: long before anybody's patience does."""
_CONNECTION = (
    "bind",
    "listen",
    "accept",
    "connect",
    "getsockname",
    "setsockopt",
    "settimeout",
    "setblocking",
    "sendall",
)
CONNECTING: Sequence[Target] = (
    *[(socket.socket, name) for name in _CONNECTION],
    *[(socket, name) for name in ("socketpair", "send_fds", "recv_fds", "create_connection")],
    *[(selectors.DefaultSelector, name) for name in ("__init__", "register")],
    (os, "memfd_create"), (os, "set_inheritable"),
)  # fmt: skip
MOVING: Sequence[Target] = (
    *[(socket.socket, name) for name in ("send", "sendmsg", "recv", "recv_into")],
    (selectors.DefaultSelector, "select"), (selectors.DefaultSelector, "modify"), (os, "ftruncate"), (mmap, "mmap"),
)  # fmt: skip
ASKING: Sequence[Target] = (
    *[(socket.socket, name) for name in (*_CONNECTION, "send", "recv")],
    (socket, "socketpair"), (selectors.DefaultSelector, "register"),
)  # fmt: skip
WRITING: Sequence[Target] = [(os, name) for name in ("open", "lseek", "read", "write", "ftruncate")]


def broken() -> OSError:
    return OSError(errno.ECONNRESET, "Connection reset by peer")


def no_descriptors() -> OSError:
    return OSError(errno.EMFILE, "Too many open files")


def exchange(rank: int) -> list[float]:
    """Collectives of several kinds: short and long ones, waited for at once or later, and messages."""
    found = []
    for length in (3, 100_000):
        x = flambeau.full((length,), float(rank + 1))
        dist.all_reduce(x)
        found.append(x[-1].item())
        dist.broadcast(x, 2)
        parts = [flambeau.empty(length) for _ in range(SIZE)]
        dist.all_gather(parts, x + rank)
        found += [each[0].item() for each in parts]
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        found.append(x[0].item())
    if rank == 0:
        dist.send(flambeau.ones(2) * 7, 1)
    elif rank == 1:
        y = flambeau.zeros(2)
        dist.recv(y, 0)
        found.append(y[0].item() - 7)
    dist.barrier()
    return found[:10]


EXPECTED = [6.0, 6.0, 7.0, 8.0, 18.0] * 2


class Ranks:
    """Ranks in threads, and how each ended: what it returned, or its error."""

    def __init__(self, limit: float) -> None:
        self.ended: list[Any] = [None] * SIZE
        self._store = dist.HashStore()
        self._limit = timedelta(seconds=limit)

    def _run(self, rank: int) -> None:
        own = World()
        own.enter()
        try:
            dist.init_process_group("gloo", store=self._store, rank=rank, world_size=SIZE, timeout=self._limit)
            self.ended[rank] = exchange(rank)
        except Exception as error:
            self.ended[rank] = error.with_traceback(None)
        finally:
            try:
                if dist.is_initialized():
                    dist.destroy_process_group()
            except Exception as error:
                self.ended[rank] = error
            World.leave()

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._run, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(SIZE)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "a rank hangs"


def _held() -> tuple[int, int]:
    """How many files are open and how many threads run."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def _is_given_back(before: tuple[int, int]) -> bool:
    """Whether no more is held than before, once threads that end have ended."""
    end = time.monotonic() + SOON
    while any(now > then for now, then in zip(_held(), before, strict=True)):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
        gc.collect()
    return True


def _swept(
    targets: Sequence[Target], error: Callable[[], Exception], types: tuple[type, ...], limit: float, every: int
) -> int:
    """Let calls of rank 1 fail, each `every`-th of them; how many failed."""
    before = _held()
    for number in itertools.count(1, every):
        calls = Calls(number, error, f"rank {VICTIM}")
        ranks = Ranks(limit)
        began = time.monotonic()
        with calls_of(targets, calls):
            ranks.run()
        took, ended = time.monotonic() - began, ranks.ended
        if not calls.failed:
            assert ended == [EXPECTED] * SIZE
            return number // every
        for rank, each in enumerate(ended):
            if isinstance(each, Exception):
                assert isinstance(each, types if rank == VICTIM else dist.DistError), (calls.where, rank, repr(each))
                assert rank == VICTIM or "rank " in str(each), (calls.where, rank, repr(each))
            else:
                assert each == EXPECTED
        assert took < limit + SOON
        del ended, ranks
        assert _is_given_back(before), calls.where
    raise AssertionError("there is no end of calls")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="counts open files as Linux lists them")
class TestRanks:
    @pytest.fixture(autouse=True)
    def _started(self) -> None:
        ranks = Ranks(PATIENCE)  # which loads what is loaded once
        ranks.run()
        assert ranks.ended == [EXPECTED] * SIZE

    def test_connecting(self) -> None:
        assert _swept(CONNECTING, no_descriptors, (dist.DistNetworkError,), 2.0, 4) > 5

    def test_moving(self) -> None:
        assert _swept(MOVING, broken, (dist.DistError,), PATIENCE, 3) > 10

    @pytest.mark.parametrize("shared", ["0", "1"])
    def test_memory(self, shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FLAMBEAU_SHARED_MEMORY", shared)
        monkeypatch.setattr(links, "bytearray", bytearray, raising=False)
        targets = (*ALLOCATIONS, (links, "bytearray"))
        assert _swept(targets, MemoryError, (MemoryError, flambeau.OutOfMemoryError), PATIENCE, 3) > 5

    def test_threads_that_do_not_start(self) -> None:
        """Whoever waits moves the bytes: a collective in the background needs no thread."""
        assert _swept([(threading.Thread, "start")], no_more_threads, (), PATIENCE, 1) > 0

    def test_a_future_needs_a_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if threading.current_thread().name == f"rank {VICTIM}":
                raise no_more_threads()
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)

        def work(rank: int) -> float:
            x = flambeau.ones(3)
            work = dist.all_reduce(x, async_op=True)
            if rank == VICTIM:
                with pytest.raises(RuntimeError, match="new thread"):
                    work.get_future()
            work.wait()
            return x[0].item()

        assert run_in_threads(work, SIZE) == [3.0] * SIZE


# ----- stores ---------------------------------------------------------------------------------------------------------


def _talk(store: Any) -> list[Any]:
    store.set("a", "1")
    store.append("a", "2")
    store.queue_push("q", "x")
    return [store.get("a"), store.compare_set("a", "12", "3"), store.queue_pop("q"), store.delete_key("a")]


_SAID = [b"12", b"3", b"x", True]


def _seen(store: Any) -> list[Any]:
    return [store.get("a") if store.check(["a"]) else None, store.queue_len("q")]


@pytest.mark.parametrize("kind", ["client", "server", "file"])
def test_stores(kind: str, tmp_path: Path) -> None:
    """After a request that failed, the next one gets its own answer, and all see the same."""
    targets, error = (WRITING, disk_full) if kind == "file" else (ASKING, broken)
    limit = timedelta(seconds=PATIENCE)
    before = _held()
    for number in itertools.count(1):
        calls = Calls(number, error, "flambeau store" if kind == "server" else None)
        path = str(tmp_path / f"store{number}")
        store: Any = None
        try:
            with calls_of(targets, calls):
                store = dist.FileStore(path) if kind == "file" else dist.TCPStore("127.0.0.1", 0, None, True, limit)
                said = _talk(store)
        except dist.DistError:
            said = _SAID
        assert said == _SAID
        if store is not None:
            other: Any = dist.FileStore(path) if kind == "file" else dist.TCPStore("127.0.0.1", store.port)
            assert _seen(store) == _seen(other), calls.where
            store.delete_key("a")
            while store.queue_len("q"):
                store.queue_pop("q")
            assert _talk(store) == _SAID
            for each in (store, other):
                each.close()
        del store
        if not calls.failed:
            break
        assert _is_given_back(before), calls.where
    assert number > 10


def test_an_interrupted_request_leaves_no_answer_behind() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store.set("a", "1")
    store.set("b", "2")
    calls = Calls(1, KeyboardInterrupt)
    with calls_of([(socket.socket, "recv")], calls), pytest.raises(KeyboardInterrupt):
        store.get("a")
    assert store.get("b") == b"2"
    store.close()
