"""A case is an op with inputs of about so many elements, the same ones for both frameworks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]


class Inputs:
    """Makes the tensors of a case for one framework; `leaves` are those that gradients are taken by."""

    def __init__(self, torch: Any, size: int, recorded: bool) -> None:
        self.torch = torch
        self.size = size
        self.recorded = recorded
        self.leaves: list[Any] = []
        self._random = np.random.RandomState(size)

    @property
    def square(self) -> tuple[int, int]:
        """Rows and columns of a matrix of about `size` elements."""
        return {10: (2, 5), 10_000: (100, 100), 1_000_000: (1000, 1000)}[self.size]

    @property
    def images(self) -> tuple[int, int, int, int]:
        """Batch, channels, height and width."""
        return {10: (1, 1, 3, 3), 10_000: (1, 4, 50, 50), 1_000_000: (4, 16, 125, 125)}[self.size]

    def constant(self, array: Any) -> Any:
        """A tensor without gradient."""
        return self.torch.from_numpy(np.ascontiguousarray(array))

    def leaf(self, array: Any) -> Any:
        """A tensor of float32 that gradients are taken by, if the case is about those."""
        tensor = self.constant(array.astype(np.float32))
        if self.recorded:
            self.leaves.append(tensor.requires_grad_())
        return tensor

    def real(self, *shape: int) -> Any:
        """Normally distributed numbers."""
        return self.leaf(self._random.standard_normal(shape or (self.size,)))

    def between(self, low: float, high: float, *shape: int) -> Any:
        """Numbers of an interval."""
        return self.leaf(self._random.uniform(low, high, shape or (self.size,)))

    def fixed(self, low: float, high: float, *shape: int) -> Any:
        """The same, without gradient."""
        return self.constant(self._random.uniform(low, high, shape or (self.size,)).astype(np.float32))

    def whole(self, low: int, high: int, *shape: int) -> Any:
        """Integers, the last one exclusive."""
        return self.constant(self._random.randint(low, high, shape or (self.size,)))

    def truth(self, *shape: int) -> Any:
        """Booleans."""
        return self.constant(self._random.rand(*(shape or (self.size,))) < 0.5)


Make = Callable[[Inputs], Call]


@dataclass(frozen=True)
class Op:
    """An op: what makes its call from inputs, and whether it has a derivative."""

    make: Make
    differentiable: bool = True


OPS: dict[str, Op] = {}


def enter(name: str, make: Make, differentiable: bool = True) -> None:
    """Add an op to the list."""
    assert name not in OPS, name
    OPS[name] = Op(make, differentiable)


def found(torch: Any, path: str) -> Any:
    """The function of a dotted name."""
    for part in path.split("."):
        torch = getattr(torch, part)
    return torch
