"""What a plan is made of: memory, arrays over it, and the calls that fill them, in order.

A `Schedule` is written while the kernels of ops run once on stand-ins (`stand_in.py`) in place of arrays. It is about
arrays of fixed shapes at fixed places: nothing in it depends on elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._codegen.expr import Program
from ..._core.arrays.abstract import AbstractArray, empty_meta, meta_array

Array = np.ndarray[Any, np.dtype[Any]]


class Untraceable(Exception):
    """A kernel does something that a schedule has no words for: it is run as it stands."""


@dataclass(eq=False)
class Buffer:
    """A piece of memory."""

    size: int
    """Bytes."""
    given: int | None = None
    """The number of the value whose memory it is; None: the plan's own."""
    content: Array | None = None
    """The elements of a constant."""


@dataclass(eq=False)
class Place:
    """An array: a window on a buffer.

    `header` has its shape, strides and dtype. Where an array of NumPy's with that header lies is decided later, and for
    some again with every call.
    """

    buffer: Buffer
    offset: int
    header: AbstractArray

    def is_same_as(self, other: Place) -> bool:
        """Whether it is the same window."""
        mine, yours = self.header, other.header
        return (
            self.buffer is other.buffer
            and self.offset == other.offset
            and mine.shape == yours.shape
            and mine.strides == yours.strides
            and mine.dtype == yours.dtype
        )


@dataclass(eq=False)
class Launch:
    """Calls that belong together: of ufuncs, of methods of NumPy's, of generated kernels, on arrays that exist."""

    calls: tuple[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any] | None], ...]
    """Functions, their arguments, and those by name; places stand for arrays."""
    reads: Sequence[Place]
    writes: Sequence[Place]
    step: str | Program | None = None
    """What it computes, where each element of what it writes depends on the elements at the same place of `inputs`: the
    name of a ufunc, or what a generated kernel does."""
    inputs: tuple[Any, ...] = ()


@dataclass
class Schedule:
    """The calls so far."""

    launches: list[Launch] = field(default_factory=list)
    refusals: list[Place] = field(default_factory=list)
    """Numbers of 64 bits that are other than zero if what was computed does not count."""
    conditions: list[tuple[int, int]] = field(default_factory=list)
    """Addresses of C functions, and what they have to return for the calls to be the right ones."""
    changed: list[Buffer] = field(default_factory=list)
    """Memory that was there before, and that calls write to: there must be no refusal once that has happened."""

    def new(self, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> Place:
        """A new array, in C order unless strides say otherwise; it has no gaps."""
        header = empty_meta(shape, np.dtype(dtype), None if strides is None else tuple(strides))
        return Place(Buffer(header.nbytes), 0, header)

    def constant(self, content: Array) -> Place:
        """An array whose elements are known."""
        return Place(Buffer(content.nbytes, content=content), 0, meta_array(content))

    def fill(self, place: Place, value: Any) -> None:
        """Write down that an array is filled with a number."""
        self.call(np.ndarray.fill, place, value, writes=[place])

    def call(
        self, function: Callable[..., Any], *args: Any, reads: Sequence[Place] = (), writes: Sequence[Place] = ()
    ) -> None:
        """Write a call down."""
        self.launches.append(Launch(((function, args, None),), reads, writes))
