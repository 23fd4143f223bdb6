"""What travels between the processes of a unit: parts of its parameters or gradients in one piece of memory."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._core.dtype import dtype, promote_types
from ..._core.kind import kind_of
from ..._core.tensor import Tensor, new_counter
from .._engines import Engine


class Rows:
    """A row for each process, and in each row a part of every tensor, one behind the other.

    The parts of a tensor are of one size: shorter ones have a rest that nobody reads.
    """

    def __init__(
        self, shapes: Sequence[tuple[int, ...]], count: int, like: Tensor, common: dtype, engine: Engine
    ) -> None:
        self._shapes = shapes
        self._bounds = [0, *itertools.accumulate(math.prod(each) for each in shapes)]
        length = count * self._bounds[-1]
        if like._kind.is_cpu:
            kind = kind_of(common, like._kind.device)
            flat = Tensor._from_parts((engine.empty(length, common.numpy, passing=True), kind, new_counter()))
        else:
            flat = like.new_empty(length, dtype=common)
        self.memory = flat.view(count, self._bounds[-1])

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
