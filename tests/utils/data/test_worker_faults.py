"""What loaders and their workers do fails in turn: documented errors, no batch lost or in the wrong place, no hang."""

from __future__ import annotations

import contextlib
import errno
import gc
import itertools
import mmap
import multiprocessing
import os
import pickle
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import connection, reduction
from typing import Any

import pytest

import flambeau
from flambeau.utils.data import DataLoader

from ...support.faults import ALLOCATIONS, Calls, Target, calls_of, no_more_threads

TALKING: Sequence[Target] = (
    *[(os, name) for name in ("dup", "ftruncate", "memfd_create", "fork") if hasattr(os, name)],
    *[(socket, name) for name in ("recv_fds", "send_fds", "socketpair") if hasattr(socket, name)],
    *[(connection.Connection, name) for name in ("_send", "_recv", "poll")],
    (connection, "wait"), (mmap, "mmap"),
)  # fmt: skip
MEMORY: Sequence[Target] = (
    *ALLOCATIONS, (pickle, "dumps"), (reduction.ForkingPickler, "dumps"), (reduction.ForkingPickler, "loads"),
)  # fmt: skip
PATIENCE = 60.0
DATA = [flambeau.full((20_000,), float(number)) for number in range(12)]
"""Large enough to come through shared memory."""


def no_descriptors() -> OSError:
    return OSError(errno.EMFILE, "Too many open files")


class ByProcess(Calls):
    """Calls of the main process, or of each of its children."""

    def __init__(self, number: int, error: Callable[[], Exception], children: bool) -> None:
        super().__init__(number, error)
        self._main, self._children = os.getpid(), children
        self._said = mmap.mmap(-1, 2)

    def end(self) -> None:
        """Let nothing fail any more, in children neither."""
        self._said[1] = 1

    def note(self, name: str = "") -> None:
        if (os.getpid() != self._main) == self._children and not self._said[1]:
            try:
                super().note(name)
            finally:
                if super().failed:
                    self._said[0] = 1

    @property
    def failed(self) -> bool:
        return self._said[0] == 1


def _loader(persistent: bool) -> Any:
    return DataLoader(
        DATA, 3, num_workers=2, persistent_workers=persistent, multiprocessing_context="fork", timeout=PATIENCE
    )


def _batches(batches: Any) -> list[list[float]]:
    return [batch[:, 0].tolist() for batch in batches]


WHOLE = [[3.0 * start, 3.0 * start + 1, 3.0 * start + 2] for start in range(4)]


def _read_on(batches: Any, found: list[list[float]]) -> Exception | None:
    """Take what an iterator has to give, up to its end or an error."""
    try:
        found += _batches(batches)
    except Exception as error:
        return error
    return None


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="workers that inherit the fault")
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("children", [False, True])
@pytest.mark.parametrize("kind", ["talking", "memory"])
def test_processes(kind: str, children: bool, persistent: bool) -> None:
    targets, error = (MEMORY, MemoryError) if kind == "memory" else (TALKING, no_descriptors)
    for number in itertools.count(1 + persistent, 3):
        calls = ByProcess(number, error, children)
        loader, found = _loader(persistent), []
        with calls_of(targets, calls):
            batches: Any = []
            ended = None
            try:
                batches = iter(loader)
            except Exception as early:
                ended = early
            ended = ended or _read_on(batches, found)
        again = _read_on(batches, found)  # what comes after an error is another one, or the batches that follow
        for each in (ended, again):
            assert each is None or isinstance(each, (MemoryError, OSError, RuntimeError)), (calls.where, repr(each))
            assert "timed out" not in str(each), calls.where
            assert "handle is closed" not in str(each), calls.where
        assert found == [each for each in WHOLE if each in found], calls.where
        assert ended is not None or found == WHOLE, calls.where
        calls.end()
        if persistent and children:  # one may have failed after its last batch: the next epoch says so
            with contextlib.suppress(RuntimeError):
                _batches(loader)
        assert _batches(loader) == WHOLE, calls.where
        del batches, loader, ended, again, each  # errors hold their frames
        gc.collect()
        assert multiprocessing.active_children() == []
        if not calls.failed:
            break
    assert number > 8


def test_an_error_keeps_nothing_alive_once_it_is_dropped() -> None:
    """Without the garbage collector: neither the loader nor its iterator, whose frames are in the traceback."""
    gc.collect()
    gc.disable()
    try:
        loader = _loader(False)
        alive = weakref.ref(loader)
        calls = ByProcess(1, no_descriptors, False)
        with calls_of([(connection.Connection, "_send")], calls), contextlib.suppress(RuntimeError):
            iter(loader)
        assert calls.failed
        del loader
        assert alive() is None
    finally:
        gc.enable()


def test_threads() -> None:
    running = threading.active_count()
    for number in (1, 2):
        loader = DataLoader(DATA, 3, num_workers=2, worker_method="thread")
        calls = Calls(number, no_more_threads)
        with calls_of([(threading.Thread, "start")], calls), pytest.raises(RuntimeError, match="new thread"):
            next(iter(loader))
        assert threading.active_count() == running
        assert _batches(loader) == WHOLE


def test_full_tables_of_files_are_said_so() -> None:
    batches = iter(_loader(False))
    next(batches)
    with (
        calls_of([(connection.Connection, "_recv")], Calls(1, no_descriptors)),
        pytest.raises(RuntimeError, match="Too many open files"),
    ):
        list(batches)
    with pytest.raises(RuntimeError, match="Too many open files"):
        next(batches)
