"""The table of converters: for the name of an op, a function that says it in ONNX's operators.

    @converter("tril", "triu")
    def trilu(g: Graph, call: Result, self: Value, diagonal: int) -> Value:
        ...

A converter is given the graph, what is known of the result, and the arguments of the op: tensors as values, sizes that
depend on the inputs as `Size`s, all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._graph import Value


@dataclass(slots=True)
class Result:
    """What is known of the results of a call."""

    op: str
    dtypes: list[np.dtype[Any]]
    shapes: list[tuple[int, ...]]
    transposed: Callable[[Value], Value | None]
    """The matrix that a value is the transpose of, if it is one."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the first result."""
        return self.dtypes[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.shapes[0]


Converter = Callable[..., Any]
Function = TypeVar("Function", bound=Converter)

CONVERTERS: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Function], Function]:
    """Make the decorated function the converter of the ops with these names."""

    def enter(function: Function) -> Function:
        for name in names:
            if name in CONVERTERS:
                raise TypeError(f"there is a converter for {name!r} already")
            CONVERTERS[name] = function
        return function

    return enter


class Unsupported(Exception):
    """A converter cannot say this call: why."""
