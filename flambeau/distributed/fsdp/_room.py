"""Memory for whole parameters, which is there only while they are needed.

A graph that has saved a parameter, or a window on it, finds it again after the memory was given up and filled anew.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..._core.kind import Kind
from ..._core.node import Node
from ..._core.tensor import Tensor
from ._windows import Window, saved_windows

_ALIGNMENT = 64
Form = tuple[tuple[int, ...], Kind]


class Room(Protocol):
    """Room for tensors of given shapes and kinds."""

    tensors: list[Tensor]
    """What parameters are made of."""

    def enter(self, params: Sequence[Tensor]) -> None:
        """Let the parameters have memory, with whatever is in it."""

    def leave(self, params: Sequence[Tensor], last: Sequence[Node] = (), since: int = 0) -> None:
        """Give the memory back; the elements are lost. A graph may have saved windows on the parameters, from a
        sequence number on, up to the last nodes.
        """


def room_for(forms: Sequence[Form]) -> Room:
    """Room where the kinds say."""
    return HostRoom(forms) if all(kind.is_cpu for _, kind in forms) else DeviceRoom(forms)


class HostRoom:
    """Addresses that stay, behind which there is memory only sometimes: the operating system takes it back."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.tensors: list[Tensor] = []
        starts, end = [], 0
        for shape, kind in forms:
            starts.append(end)
            end += -(-math.prod(shape) * kind.dtype.numpy.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._memory = mmap.mmap(-1, max(end, 1))
        whole = np.frombuffer(self._memory, np.uint8)
        for (shape, kind), start in zip(forms, starts, strict=True):
            array_type = kind.dtype.numpy
            window = whole[start : start + math.prod(shape) * array_type.itemsize].view(array_type).reshape(shape)
            self.tensors.append(Tensor._from_parts((window, kind, [0, None])))

    def enter(self, params: Sequence[Tensor]) -> None:
        """The system gives memory to whoever writes."""

    def leave(self, params: Sequence[Tensor], last: Sequence[Node] = (), since: int = 0) -> None:
        """Give the memory back: windows on it keep their addresses."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)


class DeviceRoom:
    """Memory of a device, which goes back to its pool.

    A graph keeps a parameter itself, or a window on it: both have other memory the next time. Where somebody else keeps
    a window, the memory cannot go, and is the parameter's again.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._before: list[weakref.ref[Any] | None] = [None] * len(forms)
        self._windows: list[Window] = []
        # Without memory there is one element, over and over: gradients are compared with the shape alone.
        self._elements = [kind.backend.empty((1,), kind.dtype.numpy) for _, kind in forms]
        self._nothing = [
            kind.backend.window(element, shape, kind.dtype.numpy, 0, (0,) * len(shape))
            for (shape, kind), element in zip(forms, self._elements, strict=True)
        ]
        self.tensors = [
            Tensor._from_parts((nothing, kind, [0, None]))
            for (_, kind), nothing in zip(forms, self._nothing, strict=True)
        ]

    def enter(self, params: Sequence[Tensor]) -> None:
        """Let the parameters have memory, and the windows on them."""
        for number, (param, (shape, kind)) in enumerate(zip(params, self._forms, strict=True)):
            before = self._before[number]
            array = None if before is None else before()
            param._array = kind.backend.empty(shape, kind.dtype.numpy) if array is None else array
        for each in self._windows:
            each.look_at(params[each.number]._array, each.start, each.strides)
        self._windows.clear()

    def leave(self, params: Sequence[Tensor], last: Sequence[Node] = (), since: int = 0) -> None:
        """Let the pool have it."""
        owners = {id(param._array): number for number, param in enumerate(params)}
        self._windows = list(saved_windows(last, since, owners))
        for each in self._windows:
            each.look_at(self._elements[each.number], 0, (0,) * len(each.shape))
        for number, param in enumerate(params):
            self._before[number] = weakref.ref(param._array)
            param._array = self._nothing[number]
