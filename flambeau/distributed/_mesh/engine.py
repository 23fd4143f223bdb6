"""The engine over sockets and shared memory, as process groups see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..._core.process.caller import calling_place
from ..._core.process.reproducibility import REPRODUCIBILITY
from .._errors import DistNetworkError
from ..reductions import combiner, finish
from ..stores import Store
from . import algorithms, shared
from .algorithms import Exchange
from .connect import connect_all
from .driver import Driver
from .requests import Receive, Request, Steps, Task
from .signatures import signature

_PHASES = 2
"""Tags that a collective may use."""


class Started:
    """A collective that is under way."""

    __slots__ = ("_driver", "_source", "_task")

    def __init__(self, driver: Driver, task: Task, source: Callable[[], int]) -> None:
        self._driver = driver
        self._task = task
        self._source = source

    def is_done(self) -> bool:
        """Whether it is over, well or not."""
        return self._task.done

    def error(self) -> BaseException | None:
        """The error that ended the collective, or None."""
        return self._task.error

    def wait(self, limit: float | None = None) -> None:
        """Wait until it is over; what went wrong is raised."""
        self._driver.wait(self._task, limit)

    def attend(self) -> None:
        """Let it go on while nobody waits for it."""
        self._driver.attend(self._task)

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back, from a thread of the engine, when it is over."""
        self._driver.when_done(self._task, callback)

    def source(self) -> int:
        """The member from which a received message came."""
        return self._source()

    def span(self) -> tuple[int, int] | None:
        """When it began and when it ended, as `perf_counter_ns` says; None while it goes on."""
        return (self._task.began, self._task.ended) if self._task.done else None


class MeshEngine:
    """Collectives of one group over connections that all groups share."""

    name = "gloo"

    def __init__(self, driver: Driver, ranks: Sequence[int], number: int, timeout: float) -> None:
        self._driver = driver
        self._ranks = list(ranks)
        self._number = number
        self._timeout = timeout
        self._calls = 0
        self.rank = self._ranks.index(driver.rank)
        self.size = len(self._ranks)
        others = [rank for rank in self._ranks if rank != driver.rank]
        self._is_local = bool(others) and all(rank in driver.memories for rank in others)

    @staticmethod
    def connect(rank: int, size: int, store: Store, timeout: float) -> MeshEngine:
        """Meet the other processes by a store."""
        try:
            driver = Driver(rank, connect_all(rank, size, store, timeout))
        except OSError as error:
            raise DistNetworkError(f"rank {rank} could not be connected with the others: {error}") from error
        return MeshEngine(driver, range(size), 0, timeout)

    def takes(self, array: Any) -> bool:
        """Whether collectives run on such an array as it is."""
        return type(array) is np.ndarray

    def progress(self) -> bool:
        """Move along what is under way without waiting; False: it moves better if somebody attends to it."""
        if self._is_local:
            self._driver.progress()
        return self._is_local

    def empty(self, count: int, array_type: np.dtype[Any], passing: bool = False) -> Any:
        """A flat array where collectives are quickest."""
        arena = self._driver.arena
        return np.empty(count, array_type) if arena is None else arena.array(count, array_type, passing)

    def subgroup(self, ranks: Sequence[int], number: int, timeout: float) -> MeshEngine | None:
        """An engine for some of the members; None for those that are none of them."""
        members = [self._ranks[rank] for rank in ranks]
        return MeshEngine(self._driver, members, number, timeout) if self._driver.rank in members else None

    def close(self) -> None:
        """Leave: the whole group closes the connections."""
        if self._number == 0:
            self._driver.close()

    def _way(self, length: int, least: int = algorithms.SMALL) -> ModuleType:
        """The algorithms for elements of so many bytes: those on shared memory, if all members have it."""
        return shared if self._is_local and length > least else algorithms

    def _start(self, kind: str, make: Callable[[Exchange], Steps], bits: int) -> Started:
        self._calls += 1
        exchange = Exchange(self._driver, self._ranks, self.rank, (self._number, -_PHASES * self._calls), bits)
        label = f"{kind}, collective {self._calls} of group {self._number}"
        task = self._driver.start(make(exchange), label, self._timeout, calling_place())
        return Started(self._driver, task, lambda: self.rank)

    def all_reduce(self, array: Any, op: int) -> Started:
        """Combine the arrays of all members, on all of them."""
        combine = combiner(op, array.dtype)
        bits = signature("all_reduce", array.dtype, op)

        way = algorithms.all_reduce_in_tree if REPRODUCIBILITY.samples else self._way(array.nbytes).all_reduce

        def steps(exchange: Exchange) -> Steps:
            yield from way(exchange, array, combine)
            finish(array, op, self.size)

        return self._start("all_reduce", steps, bits)

    def reduce(self, array: Any, root: int, op: int) -> Started:
        """Combine the arrays of all members, on one of them."""
        combine = combiner(op, array.dtype)

        def steps(exchange: Exchange) -> Steps:
            yield from algorithms.reduce(exchange, array, root, combine)
            if exchange.rank == root:
                finish(array, op, self.size)

        return self._start("reduce", steps, signature("reduce", array.dtype, op, root))

    def broadcast(self, array: Any, root: int) -> Started:
        """The array of one member, on all of them."""
        bits = signature("broadcast", array.dtype, root=root)
        way = self._way(array.nbytes, shared.SHORT_BROADCAST)
        return self._start("broadcast", lambda exchange: way.broadcast(exchange, array, root), bits)

    def all_gather(self, outs: Sequence[Any], own: Any) -> Started:
        """The arrays of all members, on all of them."""
        bits = signature("all_gather", own.dtype)
        way = self._way(own.nbytes)
        return self._start("all_gather", lambda exchange: way.all_gather(exchange, outs, own), bits)

    def gather(self, outs: Sequence[Any] | None, own: Any, root: int) -> Started:
        """The arrays of all members, on one of them."""
        bits = signature("gather", own.dtype, root=root)
        return self._start("gather", lambda exchange: algorithms.gather(exchange, outs, own, root), bits)

    def scatter(self, out: Any, inputs: Sequence[Any] | None, root: int) -> Started:
        """The arrays of one member, one for each."""
        bits = signature("scatter", out.dtype, root=root)
        return self._start("scatter", lambda exchange: algorithms.scatter(exchange, out, inputs, root), bits)

    def reduce_scatter(self, out: Any, inputs: Sequence[Any], op: int) -> Started:
        """Combine the n-th arrays of all members on the n-th member."""
        combine = combiner(op, out.dtype)

        def steps(exchange: Exchange) -> Steps:
            yield from self._way(sum(array.nbytes for array in inputs)).reduce_scatter(exchange, out, inputs, combine)
            finish(out, op, self.size)

        return self._start("reduce_scatter", steps, signature("reduce_scatter", out.dtype, op))

    def all_to_all(self, outs: Sequence[Any], inputs: Sequence[Any]) -> Started:
        """The n-th member gets the n-th array of each."""
        bits = signature("all_to_all", inputs[0].dtype)
        way = self._way(max(array.nbytes for array in (*outs, *inputs)))
        return self._start("all_to_all", lambda exchange: way.all_to_all(exchange, outs, inputs), bits)

    def barrier(self) -> Started:
        """Nobody goes on before everybody has come."""
        return self._start("barrier", algorithms.barrier, signature("barrier"))

    def send(self, array: Any, peer: int, tag: int) -> Started:
        """Send a message to a member."""
        bits = signature("send", array.dtype)
        exchange = Exchange(self._driver, self._ranks, self.rank, (self._number, tag), bits)

        def steps() -> Steps:
            yield (exchange.send(peer, array),)

        task = self._driver.start(steps(), f"send to rank {peer}", self._timeout, calling_place())
        return Started(self._driver, task, lambda: self.rank)

    def receive(self, array: Any, peer: int | None, tag: int) -> Started:
        """Receive a message from a member, or from whoever sends first."""
        key, bits = (self._number, tag), signature("send", array.dtype)
        sender = None if peer is None else self._ranks[peer]
        expected: list[Receive] = []

        def steps() -> Steps:
            expected.append(self._driver.receive(sender, key, bits, memoryview(array.view(np.uint8))))
            yield expected

        def source() -> int:
            found = expected[0].peer
            return self.rank if found is None else self._ranks.index(found)

        label = f"receive from {'anyone' if peer is None else f'rank {peer}'}"
        return Started(self._driver, self._driver.start(steps(), label, self._timeout, calling_place()), source)

    def absent_members(self, limit: float, wait_all: bool) -> list[int]:
        """The first member in charge hears from all others; those it does not hear from in time, on that member."""
        self._calls += 1
        key, bits = (self._number, -_PHASES * self._calls), signature("monitored_barrier")
        nothing = memoryview(b"")
        word = memoryview(bytearray(1))
        if self.rank == 0:
            return self._hear_from_all(limit, wait_all, key, bits, word)
        leader = self._ranks[0]

        def steps() -> Steps:
            yield (self._driver.send(leader, key, bits, nothing),)
            yield (self._driver.receive(leader, key, bits, word),)

        task = self._driver.start(steps(), "monitored_barrier", limit, calling_place())
        self._driver.wait(task)
        return []

    def _hear_from_all(self, limit: float, wait_all: bool, key: Any, bits: int, word: memoryview) -> list[int]:
        nothing = memoryview(bytearray(0))
        heard: dict[int, Request] = {}

        def listen() -> Steps:
            for peer in range(1, self.size):
                heard[peer] = self._driver.receive(self._ranks[peer], key, bits, nothing)
            yield list(heard.values())

        task = self._driver.start(listen(), "monitored_barrier", limit, calling_place())
        absent = self._driver.wait_quietly(task)
        missing = [peer for peer, request in heard.items() if not request.done or request.error is not None]
        if absent and missing:
            return missing if wait_all else missing[:1]

        def release() -> Steps:
            yield [self._driver.send(self._ranks[peer], key, bits, word) for peer in range(1, self.size)]

        self._driver.wait(self._driver.start(release(), "monitored_barrier", limit, calling_place()))
        return []
