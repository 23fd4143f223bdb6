"""Ops that read elements on the host: their result is a Python value, and what Python does next may depend on it.

    @host_read("item")
    def item(self: Array) -> Any:
        ...

To interpreters they are ops like any other: a capture knows that the program looked, a fake mode refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.arrays.lazy_signs import content
from .._core.arrays.narrow import widened
from .._core.backend import to_host
from .._core.modes import THREAD
from .abstract.fake import DataDependentOutputException
from .interpreter import interpret
from .op import Array, Kernel, Op, tensor_parameters


class HostRead(Op):
    """A kernel on arrays of the host that makes a Python value."""

    reads = True

    def __init__(self, name: str, kernel: Kernel) -> None:
        self.enter(name)
        self.kernel = kernel
        self.parameters, self.tensor_positions, self.list_position = tensor_parameters(kernel)
        self.__doc__ = kernel.__doc__

    def __call__(self, *args: Any) -> Any:
        modes = THREAD.modes
        if modes.interpreters:
            return interpret(self, args, modes)
        if args[0]._kind.dataless:
            from .public.overloads import operator_call

            raise DataDependentOutputException(operator_call(self, args)[0])
        arrays = list(args)
        for position in self.tensor_positions:
            arrays[position] = widened(to_host(content(args[position])))
        return self.kernel(*arrays)


def host_read(name: str) -> Callable[[Kernel], HostRead]:
    """Make the decorated kernel the op `name`."""
    return lambda kernel: HostRead(name, kernel)


@host_read("elements")
def elements(self: Array) -> Any:
    """The elements of a tensor, as an array of the host."""
    return self
