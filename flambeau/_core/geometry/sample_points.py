"""Points of a grid at which an image is sampled."""

from __future__ import annotations

from typing import Any

from ..process.processor import ON_X86_64
from ..process.reproducibility import REPRODUCIBILITY


def pixel_of_nan(rank: int, last: Any) -> Any:
    """The pixel to which a place that is not a number is moved when places outside are; None: it stays NaN.

    It is what PyTorch's comparisons make of it: those of numbers in three dimensions, of vectors in two.
    """
    if rank == 3:
        return last
    return last * 0 if ON_X86_64 or REPRODUCIBILITY.machine else None


def tap_of_nan(zeros_outside: bool) -> float:
    """The pixel that a place takes which is not a number: the first one, or one outside of the image.

    PyTorch converts it to an integer, which is 0 or the smallest one, as the processor has it.
    """
    return -8.0 if zeros_outside and (ON_X86_64 or REPRODUCIBILITY.machine) else 0.0
