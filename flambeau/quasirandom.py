"""Sequences that fill a cube evenly, under the names of `torch.quasirandom`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flambeau as torch

from ._core.dtype import dtype as dtype_class
from ._core.dtype import float32, get_default_dtype
from ._core.generator import Generator
from ._core.names.absent import refusal
from ._core.tensor import Tensor

__all__ = ["SobolEngine"]

_NUMBERS = Path(__file__).parent / "sobol_numbers.npz"
"""Primitive polynomials and initial direction numbers by S. Joe and F. Y. Kuo ("new-joe-kuo-6")."""


def _directions(dimension: int, bits: int) -> npt.NDArray[np.int64]:
    """Direction numbers: those that are given, then those that follow by each dimension's polynomial."""
    with np.load(_NUMBERS) as file:
        polynomials, numbers = file["polynomials"].astype(np.int64), file["numbers"].astype(np.int64)
    if dimension > len(polynomials):
        raise refusal(
            "torch.quasirandom.SobolEngine", f"numbers for more than {len(polynomials)} dimensions are not kept"
        )
    found = np.ones((dimension, bits), np.int64)
    for row in range(1, dimension):
        polynomial = int(polynomials[row])
        degree = polynomial.bit_length() - 1
        found[row, :degree] = numbers[row, :degree]
        for column in range(degree, bits):
            value = int(found[row, column - degree])
            for step in range(1, degree + 1):
                if polynomial >> (degree - step) & 1:
                    value ^= int(found[row, column - step]) << step
            found[row, column] = value
    return found << np.arange(bits - 1, -1, -1)


def _scrambled(directions: npt.NDArray[np.int64], triangles: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Direction numbers whose bits are multiplied, modulo 2, by a triangular matrix of bits for each dimension."""
    dimension, bits = directions.shape
    places = np.arange(bits)
    digits = directions[:, :, None] >> places & 1
    masks = triangles.copy()
    masks[:, places, places] = 1
    # Bit k of a row of the matrix, read as a number, stands in column bits - 1 - k; the last row gives the lowest bit.
    products = np.einsum("djk,dpk->djp", digits, masks[:, ::-1, ::-1]) % 2
    found: npt.NDArray[np.int64] = (products << places).sum(-1).reshape(dimension, bits)
    return found


def _path(
    quasi: npt.NDArray[np.int64], directions: npt.NDArray[np.int64], first: int, count: int
) -> npt.NDArray[np.int64]:
    """A point as whole numbers and `count` further ones: each adds the direction of the counter's lowest zero bit."""
    steps = np.arange(first, first + count, dtype=np.int64)
    zeros = np.log2((steps + 1 & ~steps).astype(np.float64)).astype(np.int64)
    moves = np.concatenate([quasi[None], directions[:, zeros].T])
    return np.bitwise_xor.accumulate(moves, axis=0)


class SobolEngine:
    """Points of a Sobol sequence, scrambled if asked for: `SobolEngine(2).draw(4)`.

    >>> flambeau.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = _tensor(_directions(dimension, self.MAXBIT))
        if scramble:
            self._scramble()
        else:
            self.shift = _tensor(np.zeros(dimension, np.int64))
        self.quasi = self.shift.clone()
        self._first_point = self._points(self.quasi.reshape(1, -1), float32)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shifts = torch.randint(2, (self.dimension, bits), generator=generator).numpy()
        self.shift = _tensor((shifts << np.arange(bits)).sum(-1))
        triangles = torch.randint(2, (self.dimension, bits, bits), generator=generator).tril().numpy()
        self.sobolstate = _tensor(_scrambled(self.sobolstate.numpy(), triangles))

    def _points(self, numbers: Tensor, dtype: dtype_class) -> Tensor:
        points: Tensor = numbers.to(dtype) / 2**self.MAXBIT
        return points

    def _advance(self, count: int) -> Tensor:
        """The next points as whole numbers."""
        path = _path(self.quasi.numpy(), self.sobolstate.numpy(), max(self.num_generated - 1, 0), count)
        self.quasi = _tensor(path[-1].copy())
        return _tensor(path[1:])

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype_class | None = None) -> Tensor:
        """The next `n` points, one in a row."""
        wanted = get_default_dtype() if dtype is None else dtype
        if self.num_generated == 0:
            result = self._first_point.to(wanted)
            if n > 1:
                result = torch.cat([result, self._points(self._advance(n - 1), wanted)], dim=-2)
        else:
            result = self._points(self._advance(n), wanted)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype_class | None = None) -> Tensor:
        """The next 2**m points: together with those before they must be a power of two, to fill the cube evenly."""
        count = 2**m
        total = self.num_generated + count
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(count, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        self._advance(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _tensor(numbers: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers))
