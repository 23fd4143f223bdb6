"""The types of numbers of `llvmlite.ir`, for machines without it: values to compare, of which no code is made."""

from __future__ import annotations

from dataclasses import dataclass


class Type:
    """The type of a value in generated code."""


@dataclass(frozen=True)
class VoidType(Type):
    """The type of a function without a result."""


@dataclass(frozen=True)
class PointerType(Type):
    """The type of an address of any element."""


@dataclass(frozen=True)
class IntType(Type):
    """An integer of so many bits."""

    width: int


@dataclass(frozen=True)
class HalfType(Type):
    """A number of 16 bits."""


@dataclass(frozen=True)
class FloatType(Type):
    """A number of 32 bits."""


@dataclass(frozen=True)
class DoubleType(Type):
    """A number of 64 bits."""


@dataclass(frozen=True)
class VectorType(Type):
    """A vector: several numbers of one type, side by side in a register."""

    element: Type
    count: int
