"""Derivatives by finite differences.

A Jacobian here is a matrix with one row for each element of the input and one column for each element of the output. A
complex output counts as two real ones, its real and its imaginary part; the gradient of a real number by a complex
z = x + iy is d/dx + i d/dy, so that `backward` is started with 1 for the real part and with 1j for the imaginary part.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from flambeau._core.tensor import Tensor
from flambeau._ops.create.constants import zeros
from flambeau._ops.pointwise.complex_make import complex_
from flambeau._ops.shape.join import stack
from flambeau.autograd._gradcheck.check import Check


def change_along(check: Check, item: Tensor, direction: Tensor) -> list[Tensor]:
    """The derivative of every output along one direction of one input, by a central difference."""
    step = direction * check.eps
    with moved(item, step):
        above = evaluate(check)
    with moved(item, -step):
        below = evaluate(check)
    return [(high - low) / (2 * check.eps) for high, low in zip(above, below, strict=True)]


def numerical_jacobians(check: Check, item: Tensor) -> list[Derivative]:
    """For each output, its derivatives by the real and, where there is one, by the imaginary part of `item`."""
    outputs = evaluate(check)
    by_real: list[list[Tensor]] = [[] for _ in outputs]
    by_imaginary: list[list[Tensor]] = [[] for _ in outputs]
    for unit in unit_vectors(item):
        for rows, change in zip(by_real, change_along(check, item, unit), strict=True):
            rows.append(change.reshape(-1))
        if item.is_complex():
            for rows, change in zip(by_imaginary, change_along(check, item, unit * 1j), strict=True):
                rows.append(change.reshape(-1))
    return [
        Derivative(stacked(real, output), stacked(imaginary, output) if item.is_complex() else None)
        for real, imaginary, output in zip(by_real, by_imaginary, outputs, strict=True)
    ]


@dataclass(frozen=True)
class Derivative:
    """Derivatives of one output by the real and the imaginary part of one input (None for a real input)."""

    by_real: Tensor
    by_imaginary: Tensor | None

    def gradient(self, part: str) -> Tensor:
        """The Jacobian that backward should give for the real or the imaginary part of the output."""
        if self.by_imaginary is None:
            return part_of(self.by_real, part)
        return complex_(part_of(self.by_real, part), part_of(self.by_imaginary, part))


def evaluate(check: Check) -> list[Tensor]:
    """The outputs at the present inputs, in memory of their own: an output may be a view of an input.

    They are recorded, since the function may itself differentiate what it computes.
    """
    return [item.detach().clone() for _, item in check.outputs()]


@contextlib.contextmanager
def moved(item: Tensor, offset: Tensor) -> Iterator[None]:
    """Add `offset` to the values of an input; `.data` leaves the version alone, which graphs already made check."""
    values = item.data
    before = values.clone()
    values.add_(offset)
    try:
        yield
    finally:
        values.copy_(before)


def unit_vectors(item: Tensor) -> Iterator[Tensor]:
    """The unit vectors of the shape of `item`, in the order of its elements."""
    for index in itertools.product(*(range(size) for size in item.shape)):
        unit = zeros(item.shape, dtype=item.dtype, device=item.device)
        unit[index] = 1
        yield unit


def stacked(rows: list[Tensor], output: Tensor) -> Tensor:
    return stack(rows) if rows else output.new_zeros((0, output.nelement()))


def part_of(tensor: Tensor, part: str) -> Tensor:
    if tensor.is_complex():
        return tensor.real if part == "real" else tensor.imag
    return tensor


def parts_of(output: Tensor) -> list[tuple[str, complex]]:
    """The real components of an output, each with the number that starts backward from it."""
    return [("real", 1), ("imaginary", 1j)] if output.is_complex() else [("real", 1)]
