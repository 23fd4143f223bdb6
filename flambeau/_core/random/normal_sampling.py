"""Normal numbers by the method of Box and Muller on blocks of 16, as PyTorch makes 16 or more of them on the CPU.

In float64 PyTorch uses the C library's functions everywhere. In float32, in which the 2-byte types are computed too, it
has polynomials of its own on x86-64 (`normal_polynomials.py`), and uses the C library's float functions elsewhere. So
does NumPy there, if asked in the right way: the exponential function of an imaginary complex64 number is that library's
float cosine and sine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import FUNCTIONS
from ..process.processor import ON_X86_64
from ..process.reproducibility import REPRODUCIBILITY
from . import c_library
from .fused_multiply_add import multiply_add, multiply_add32
from .normal_polynomials import transform_by_polynomials

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

NORMAL_BLOCK = 16
_CHUNK = 8192
"""Long computations run over pieces of this many numbers, whose intermediate results stay in the cache."""


def normal_blocks(
    units: Callable[[int], Array], size: int, mean: float, std: float, *, spare_draws: bool = True
) -> Array:
    """`size` >= 16 normal numbers: 8 pairs at a time, and a last block that ends with the array.

    When `size` is no multiple of 16, the last 16 numbers are made again from fresh draws. In float32 and float64 the
    overwritten numbers have used their draws up (`spare_draws`); in the 2-byte types they have not.
    """
    remainder = size % NORMAL_BLOCK
    whole = size - remainder
    if not remainder:
        return _box_muller(units(size), mean, std)
    drawn = units((size if spare_draws else whole) + NORMAL_BLOCK)
    drawn[whole : whole + NORMAL_BLOCK] = drawn[-NORMAL_BLOCK:]
    values = _box_muller(drawn[: whole + NORMAL_BLOCK], mean, std)
    values[size - NORMAL_BLOCK : size] = values[-NORMAL_BLOCK:].copy()
    return values[:size]


def _box_muller(units: Array, mean: float, std: float) -> Array:
    """Normal numbers from uniform ones: in each 16, the first 8 give the radii, the last 8 the angles."""
    if units.dtype == np.float32:
        return multiply_add32(standard_normals32(units), np.float32(std), np.float32(mean))
    return multiply_add(_transformed(units, _transform64), std, mean)


def standard_normals32(units: Array, by_polynomials: bool = ON_X86_64) -> Array:
    """Standard normal numbers from float32 units, as PyTorch makes them here, or on the machine that is asked for."""
    if not by_polynomials and not REPRODUCIBILITY.machine:
        return _transformed(units, _transform32)
    if (kernels := FUNCTIONS[np.ndarray]["random"]) is not None:  # in place of some hundred calls of NumPy's
        values: Array = kernels.normals_by_polynomials(units)
        return values
    return _transformed(units, transform_by_polynomials)


def _transformed(units: Array, transform: Callable[[Array, Array], None]) -> Array:
    values = np.empty_like(units)
    for start in range(0, len(units), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        transform(units[chunk].reshape(-1, 2, 8), values[chunk].reshape(-1, 2, 8))
    return values


def _transform64(pairs: Array, values: Array) -> None:
    theta = pairs[:, 1] * (2.0 * math.pi)
    radius = np.sqrt(c_library.log(1 - pairs[:, 0]) * -2.0)
    np.multiply(radius, c_library.cos(theta), out=values[:, 0])
    np.multiply(radius, c_library.sin(theta), out=values[:, 1])


def _transform32(pairs: Array, values: Array) -> None:
    angles = np.zeros((len(pairs), 8), np.complex64)
    angles.imag = pairs[:, 1] * np.float64(2.0 * math.pi)
    np.exp(angles, out=angles)
    radius = np.sqrt(np.log(1 - pairs[:, 0]) * np.float32(-2))
    np.multiply(radius, angles.real, out=values[:, 0])
    np.multiply(radius, angles.imag, out=values[:, 1])
