"""What Python hands to a kernel: arrays and numbers, read in place.

A kernel is a built-in function to Python: it gets a C array of objects, and reads the fields of NumPy arrays where
NumPy's binary interface puts them. No wrapper stands between, so a call costs less than one of a ufunc. Nothing is
checked here: whoever calls a kernel has checked types, sizes and strides before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .build import Builder, Value
from .types import F32, F64, I32, I64, POINTER, VOID

HEADER = object.__basicsize__
"""Where the fields of an object begin: later in builds of Python without a global lock."""

DATA, DIMENSIONS, SHAPE, STRIDES = HEADER, HEADER + 8, HEADER + 16, HEADER + 24
FLAGS = HEADER + 48


class ArrayArgument:
    """A NumPy array among the arguments of a kernel."""

    def __init__(self, b: Builder, pointer: Value) -> None:
        self.b = b
        self.object = pointer

    @property
    def data(self) -> Value:
        """The address of the first element."""
        return self.b.load_raw(self.object + DATA, POINTER)

    @property
    def ndim(self) -> Value:
        return self.b.convert(self.b.load_raw(self.object + DIMENSIONS, I32), I64)

    @property
    def flags(self) -> Value:
        """NumPy's flags, a 32-bit integer."""
        return self.b.load_raw(self.object + FLAGS, I32)

    def size(self, dimension: Value | int) -> Value:
        """The length of a dimension."""
        return self._entry(SHAPE, dimension)

    def stride(self, dimension: Value | int) -> Value:
        """The distance of neighbours along a dimension, in bytes."""
        return self._entry(STRIDES, dimension)

    @property
    def sizes(self) -> Value:
        """The address of the lengths."""
        return self.b.load_raw(self.object + SHAPE, POINTER)

    @property
    def strides(self) -> Value:
        """The address of the distances."""
        return self.b.load_raw(self.object + STRIDES, POINTER)

    def _entry(self, field: int, dimension: Value | int) -> Value:
        table = self.b.load_raw(self.object + field, POINTER)
        return self.b.load_raw(self.b.offset(table, dimension, I64), I64)


class Arguments:
    """The arguments of a kernel, in order."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._table = b.arguments[1]
        self.count = b.arguments[2]

    def object(self, position: Value | int) -> Value:
        return self.b.load_raw(self.b.offset(self._table, position, POINTER), POINTER)

    def array(self, position: Value | int) -> ArrayArgument:
        return ArrayArgument(self.b, self.object(position))

    def integer(self, position: Value | int) -> Value:
        """A Python integer."""
        return self.b.call("PyLong_AsLongLong", I64, [self.object(position)])

    def float64(self, position: Value | int) -> Value:
        """A Python float."""
        return self.b.call("PyFloat_AsDouble", F64, [self.object(position)])

    def float32(self, position: Value | int) -> Value:
        return self.b.convert(self.float64(position), F32)


@contextmanager
def without_lock(b: Builder) -> Iterator[None]:
    """Let other Python threads run during the body, which must not touch Python's objects."""
    state = b.call("PyEval_SaveThread", POINTER, [])
    yield
    b.call("PyEval_RestoreThread", VOID, [state])


def give_back_first(b: Builder) -> None:
    """Return the kernel's first argument, or None if it has none: a new reference, as Python wants it."""
    first = Arguments(b).object(0)
    b.call("Py_IncRef", VOID, [first])
    b.give_back(first)
