"""What the library does but once, done beside everything else that a first step does.

In its first call `sgemm` writes the machine code of all its kernels, which takes some 50 milliseconds. A thread makes a
call of its own as soon as the library is loaded. Whoever needs a product before that is done has to wait for the rest
of it, and imports meanwhile what comes next.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np

from ...._core.process.locks import new_handed_lock
from ...._core.process.processor import ON_X86_64
from ...tiers import generated

if TYPE_CHECKING:
    from .library import Library

_SIZE = 4
"""Rows and columns of matrices that are no vectors, for which there is another function."""

_NEXT = ("pointwise", "multi", "rows", "reduce")
"""Families of kernels without which there is hardly a step: activations, optimizers, norms and losses."""

_running = new_handed_lock()
"""Taken while the thread runs: a process that is forked meanwhile would wait for kernels that nobody writes."""


def write_kernels(library: Library) -> None:
    """Let the library write its kernels for products, in a thread of their own, if there is a core for it."""
    if ON_X86_64 and hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        _running.acquire()
        try:
            threading.Thread(target=_write, args=(library,), name="kernels of products").start()
        except RuntimeError:  # there are too many already, or Python is about to end: the first product will do it
            _running.release()


are_being_written = _running.locked
"""Whether a product would have to wait; what every product asks is no function of Python's."""


def import_meanwhile() -> None:
    """Import what comes next, until the kernels are there."""
    for family in _NEXT:
        if not are_being_written():
            return
        generated(family)


def _write(library: Library) -> None:
    try:
        library.set_threads(1)  # of those that the library would start for this one
        left, right, product = (np.zeros((_SIZE, _SIZE), np.float32) for _ in range(3))
        places = [each.__array_interface__["data"][0] for each in (left, right, product)]
        for turns_right in (b"N", b"T"):
            library.sgemm(
                b"N", turns_right, _SIZE, _SIZE, _SIZE, 1.0, places[0], _SIZE, places[1], _SIZE, 0.0, places[2], _SIZE
            )
    finally:
        _running.release()
