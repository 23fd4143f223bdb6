"""What travels between the processes of a unit: parts of its parameters or gradients in one piece of memory."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._core.device import device as Device
from ..._core.dtype import dtype, promote_types
from ..._core.kind import kind_of
from ..._core.tensor import Tensor, new_counter
from .._engines import Engine


class Rows:
    """A row for each process, and in each row a part of every tensor, one behind the other.

    The parts of a tensor are of one size: shorter ones have a rest that nobody reads.
    """

    def __init__(
        self, shapes: Sequence[tuple[int, ...]], count: int, place: Device, common: dtype, engine: Engine
    ) -> None:
        self._shapes = shapes
        self._bounds = [0, *itertools.accumulate(math.prod(each) for each in shapes)]
        length, kind, array_type = count * self._bounds[-1], kind_of(common, place), common.numpy
        if kind.is_cpu:
            array = engine.empty(length, array_type, passing=True)
        else:
            array = kind.backend.empty((length,), array_type)
        self.memory = Tensor._from_parts((array, kind, new_counter())).view(count, self._bounds[-1])

    def on_host(self, non_blocking: bool) -> Rows:
        """A copy in the memory of the host."""
        copy: Rows = object.__new__(Rows)
        copy._shapes, copy._bounds = self._shapes, self._bounds
        copy.memory = self.memory.to("cpu", non_blocking=non_blocking, copy=True)
        return copy

    def part(self, row: int, number: int) -> Tensor:
        """The place of a tensor's part."""
        return self.memory[row, self._bounds[number] : self._bounds[number + 1]].view(self._shapes[number])

    def put(self, row: int, number: int, given: Tensor, dim: int) -> None:
        """Write a part; the rest becomes zero."""
        place = self.part(row, number)
        length, whole = given.shape[dim], place.shape[dim]
        if length < whole:
            place.narrow(dim, length, whole - length).zero_()
            place = place.narrow(dim, 0, length)
        place.copy_(given)


def common_dtype(dtypes: Sequence[dtype]) -> Any:
    """The dtype of a message: the widest of what it carries."""
    return functools.reduce(promote_types, dtypes)
