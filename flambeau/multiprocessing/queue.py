"""Queues whose ends can be told from Python's own: tensors that pass through them travel as shared memory."""

from __future__ import annotations

import pickle
from multiprocessing.queues import Queue as _Queue
from multiprocessing.queues import SimpleQueue as _SimpleQueue
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """One end of a pipe that pickles tensors as shared memory, whatever pickler the pipe itself would take."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        self.conn.send_bytes(ForkingPickler.dumps(obj))

    def recv(self) -> Any:
        """The next object that was sent."""
        return pickle.loads(self.conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" not in vars(self):  # while it is unpickled
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'conn'")
        return getattr(self.conn, name)


def _wrap_ends(queue: Any) -> None:
    queue._reader, queue._writer = ConnectionWrapper(queue._reader), ConnectionWrapper(queue._writer)


if TYPE_CHECKING:
    _AnyQueue = _Queue[Any]
    _AnySimpleQueue = _SimpleQueue[Any]
else:
    _AnyQueue = _Queue
    _AnySimpleQueue = _SimpleQueue


class Queue(_AnyQueue):
    """A queue with a thread that sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _wrap_ends(self)


class SimpleQueue(_AnySimpleQueue):
    """A queue that sends at once."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        _wrap_ends(self)
