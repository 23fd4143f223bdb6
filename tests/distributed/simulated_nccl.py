"""NCCL where there is no GPU: its functions on the memory of the simulated device, between threads that play ranks."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.distributed._errors import DistBackendError
from flambeau.distributed._nccl.library import ID_LENGTH, TYPES

_TYPES = {number: name for name, number in TYPES.items() if name not in ("bool", "bfloat16")}
_UFUNCS = (np.add, np.multiply, np.maximum, np.minimum, np.add)
_AVERAGE = 4


class SimulatedNccl:
    """As `Library`. A call waits for those of the other ranks; messages between two ranks keep their order."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=120)
        self._shown: list[Any] = [None] * size
        self._messages: dict[tuple[int, int], deque[bytes]] = {}
        self._sent = threading.Condition()
        self._held = threading.local()
        self.calls: list[str] = []

    def new_identity(self) -> bytes:
        return bytes(range(ID_LENGTH))

    def communicator(self, identity: bytes, size: int, rank: int) -> int:
        assert identity == bytes(range(ID_LENGTH))
        return 1000 + rank

    def asynchronous_error(self, communicator: int) -> str | None:
        return None

    def call(self, name: str, *arguments: Any) -> None:
        self.calls.append(name)
        if name == "GroupStart":
            self._held.steps = []
        elif name == "GroupEnd":
            for step in self._held.steps:
                step()
        elif name not in ("CommDestroy", "CommAbort"):
            self._held.steps.append(lambda: getattr(self, f"_{name}")(*arguments))

    def _everyone(self, rank: int, own: Any, use: Callable[[list[Any]], None]) -> None:
        self._shown[rank] = own.copy()
        self._barrier.wait()
        use(list(self._shown))
        self._barrier.wait()

    def _combined(self, values: list[Any], op: int) -> Any:
        total = _UFUNCS[op].reduce(values)
        return total / len(values) if op == _AVERAGE else total

    def _AllReduce(self, source: int, target: int, count: int, kind: int, op: int, who: int, stream: int) -> None:
        def use(values: list[Any]) -> None:
            _at(target, count, kind)[:] = self._combined(values, op)

        self._everyone(who - 1000, _at(source, count, kind), use)

    def _Reduce(
        self, source: int, target: int, count: int, kind: int, op: int, root: int, who: int, stream: int
    ) -> None:
        def use(values: list[Any]) -> None:
            if who - 1000 == root:
                _at(target, count, kind)[:] = self._combined(values, op)

        self._everyone(who - 1000, _at(source, count, kind), use)

    def _ReduceScatter(self, source: int, target: int, count: int, kind: int, op: int, who: int, stream: int) -> None:
        rank = who - 1000

        def use(values: list[Any]) -> None:
            _at(target, count, kind)[:] = self._combined(values, op)[rank * count : (rank + 1) * count]

        self._everyone(rank, _at(source, count * len(self._shown), kind), use)

    def _AllGather(self, source: int, target: int, count: int, kind: int, who: int, stream: int) -> None:
        def use(values: list[Any]) -> None:
            _at(target, count * len(values), kind)[:] = np.concatenate(values)

        self._everyone(who - 1000, _at(source, count, kind), use)

    def _Broadcast(self, source: int, target: int, count: int, kind: int, root: int, who: int, stream: int) -> None:
        def use(values: list[Any]) -> None:
            _at(target, count, kind)[:] = values[root]

        self._everyone(who - 1000, _at(source, count, kind), use)

    def _Send(self, source: int, count: int, kind: int, peer: int, who: int, stream: int) -> None:
        with self._sent:
            queue = self._messages.setdefault((who - 1000, peer), deque())
            queue.append(_at(source, count, kind).tobytes())
            self._sent.notify_all()

    def _Recv(self, target: int, count: int, kind: int, peer: int, who: int, stream: int) -> None:
        with self._sent:
            if not self._sent.wait_for(lambda: self._messages.get((peer, who - 1000)), 120):
                raise DistBackendError("nothing was sent")
            message = self._messages[peer, who - 1000].popleft()
        _at(target, count, kind)[:] = np.frombuffer(message, _TYPES[kind])


def _at(pointer: int, count: int, kind: int) -> Any:
    """The elements at an address of the simulated device, which is the host's."""
    array_type = np.dtype(_TYPES[kind])
    content = (ctypes.c_char * (count * array_type.itemsize)).from_address(pointer)
    return np.frombuffer(content, array_type)
