"""A CUDA device on which nothing happens, and who is told of everything that would.

Kernels are neither compiled nor run, libraries are never called, memory is numbers. What Python does in a step can be
timed there without a GPU, and what it asks of a GPU be compared. It stays the device of the process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import flambeau
from flambeau._backends.cuda.backend import install_backend
from flambeau._backends.cuda.convolution import conv
from flambeau._backends.cuda.cudnn import frontend as cudnn
from flambeau._backends.cuda.layers import linear
from tests.support.simulated_cuda import SimulatedDriver

Note = Callable[[str, str], None]
"""Told what is asked of the device, in a word, and which kernel or which sizes it is about."""


class IdleDriver(SimulatedDriver):
    """The driver of such a device."""

    def __init__(self, note: Note) -> None:
        super().__init__()
        self._note = note
        self._end = 1 << 40
        vars(self.supplier).update(take=self._take, give=lambda pointer: None)

    def _take(self, nbytes: int) -> int:
        begin = self._end
        self._end += (nbytes + 511) & -512
        return begin

    def upload(self, pointer: int, host: Any) -> None:
        self._note("upload", str(host.nbytes))

    def download(self, host: Any, pointer: int) -> None:
        host[...] = 1

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._note("copy", str(nbytes))

    def clear(self, pointer: int, nbytes: int) -> None:
        self._note("clear", str(nbytes))

    def compile(self, source: str) -> Callable[[int, int, bytes], None]:
        name = f"{zlib.crc32(source.encode()):08x}"

        def launch(blocks: int, threads: int, fields: bytes) -> None:
            self._note("launch", name)

        return launch

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Callable[[int, int, int], None]:
        name = f"{left.shape} @ {right.shape}{' + ' * added}"
        return lambda result, left, right: self._note("product", name)

    def seen(self, array: Any) -> Any:
        return np.zeros(array.shape, array.dtype)  # what the library would sort and select

    def block_threads(self, wanted: int) -> int:
        return wanted

    def generation(self) -> int:
        return 90


@contextmanager
def idle_device(note: Note) -> Iterator[None]:
    """A context in which this process has such a device."""

    class Plan:
        """A plan of a library that is not there."""

        def __init__(self, *description: Any) -> None: ...

        def __call__(self, *operands: Any) -> None:
            note("library", "")

    install_backend([IdleDriver(note)])
    with (
        mock.patch.multiple(conv, library=lambda: True, Convolution=Plan),
        mock.patch.multiple(cudnn, library=lambda: True, Plan=Plan),
        mock.patch.object(linear, "Product", Plan),
        mock.patch.object(flambeau.cuda, "is_available", return_value=True),
    ):
        yield
