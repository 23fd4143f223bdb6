"""Large files written past the system's cache, while the next part is being prepared.

A file that is forced to the disk gains little from being copied to the cache first, page by page: on a fast disk that
takes longer than the disk does. It also pushes out what the program itself reads, such as its dataset. So the bytes are
collected in a few buffers at page boundaries, and a thread writes these with `O_DIRECT`.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import queue
import threading
from typing import Any

import numpy as np

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

WORTH_IT = 1 << 26
"""Smaller files stay in the cache, where a reader finds them."""
_PIECE = 1 << 22
_BUFFERS = 3


class DirectWriter:
    """Takes bytes like a file, and writes them in pieces from the position 0 of a new file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._free: queue.SimpleQueue[mmap.mmap] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[mmap.mmap | None] = queue.SimpleQueue()
        for _ in range(_BUFFERS):
            self._free.put(mmap.mmap(-1, _PIECE))
        self._buffer = self._free.get()
        self._filled = 0
        self._written = 0
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="flambeau-direct", daemon=True)
        self._thread.start()

    def write(self, data: Any) -> int:
        """Take all bytes of `data`; an error in writing earlier ones is raised here or by `finish`."""
        view = memoryview(data).cast("B")
        start = 0
        while start < view.nbytes:
            part = view[start : start + _PIECE - self._filled]
            # Through NumPy, which lets other threads run while it copies.
            np.frombuffer(self._buffer, np.uint8, part.nbytes, self._filled)[:] = np.frombuffer(part, np.uint8)
            start += part.nbytes
            self._filled += part.nbytes
            if self._filled == _PIECE:
                self._full.put(self._buffer)
                self._buffer = self._free.get()
                self._filled = 0
            if self._error is not None:
                raise self._error
        return view.nbytes

    def finish(self) -> None:
        """Write the rest. The file is then complete, but not yet forced to the disk."""
        self.stop()
        if self._error is not None:
            raise self._error
        _set_direct(self._descriptor, False)  # the rest is no whole number of pages
        self._put(memoryview(self._buffer)[: self._filled])

    def stop(self) -> None:
        """Wait until nothing is being written any more."""
        self._full.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (buffer := self._full.get()) is not None:
            if self._error is None:
                try:
                    self._put(memoryview(buffer))
                except OSError as error:
                    self._error = error
            self._free.put(buffer)

    def _put(self, view: memoryview) -> None:
        while view.nbytes:
            try:
                count = os.pwrite(self._descriptor, view, self._written)
            except OSError:
                if not _set_direct(self._descriptor, False):
                    raise
                continue  # a file system that takes the flag and then refuses, or an odd rest: through the cache
            self._written += count
            view = view[count:]


def _set_direct(descriptor: int, wanted: bool) -> bool:
    """Go past the cache or through it; False if it is so already, or cannot be."""
    direct = getattr(os, "O_DIRECT", 0)
    if fcntl is None or not direct:
        return False
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    changed = flags | direct if wanted else flags & ~direct
    if changed == flags:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, changed)
    except OSError:
        return False
    return True


def direct_writer(file: Any, expected: int) -> DirectWriter | None:
    """A writer to a new file of about `expected` bytes; None where that is of no use."""
    if expected < WORTH_IT or not _set_direct(file.fileno(), True):
        return None
    try:
        return DirectWriter(file.fileno())
    except RuntimeError:  # the interpreter is about to end and starts no threads any more
        _set_direct(file.fileno(), False)
        return None
