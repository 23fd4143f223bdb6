"""Datasets for the tests, in a module that a spawned worker imports quickly: PyTorch is not imported here."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import flambeau
from flambeau.utils.data import Dataset, IterableDataset, get_worker_info


class Rows(Dataset[Any]):
    """Rows of one tensor, large enough to go through shared memory in batches."""

    def __init__(self, count: int, width: int = 4096) -> None:
        self.rows = flambeau.arange(count * width, dtype=flambeau.float32).reshape(count, width)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index], index


class RandomRows(Rows):
    """Rows with noise from all three generators."""

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        if info is not None and info.rng is not None:
            python, own, numbers = info.rng
            return index, python.random(), numbers.random(), flambeau.rand((), generator=own)
        return index, random.random(), np.random.rand(), flambeau.rand(())


class Trouble(Dataset[Any]):
    """Does what it is told at one index."""

    def __init__(self, what: str, at: int = 5, count: int = 8) -> None:
        self.what, self.at, self.count = what, at, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index == self.at:
            return getattr(self, self.what)()
        return index

    def value_error(self) -> None:
        raise ValueError("no such row")

    def key_error(self) -> None:
        raise KeyError("missing")

    def decode_error(self) -> None:
        raise UnicodeDecodeError("utf8", b"a", 0, 1, "why")

    def local_error(self) -> None:
        class Local(Exception):
            pass

        raise Local("here")

    def unpicklable(self) -> Any:
        return lambda: None

    def kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def exit(self) -> None:
        os._exit(3)

    def system_exit(self) -> None:
        raise SystemExit(4)

    def sleep(self) -> None:
        time.sleep(60)


class Stream(IterableDataset[Any]):
    """Each worker has a length of its own; numbers say which worker they are from."""

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        worker = 0 if info is None else info.id
        yield from range(100 * worker, 100 * worker + self.lengths[worker])


class RandomStream(Stream):
    """A stream that draws random numbers before and while it runs."""

    def __iter__(self) -> Iterator[Any]:
        order = list(super().__iter__())
        random.shuffle(order)
        for number in order:
            yield number, flambeau.rand(())


def identity(batch: Any) -> Any:
    """A collate_fn that leaves the samples as they are."""
    return batch


def fail_to_start(worker: int) -> None:
    """A worker_init_fn that fails."""
    raise ValueError(f"worker {worker} cannot start")
