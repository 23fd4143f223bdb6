"""Ops that read elements on the host: their result is a Python value, and what Python does next may depend on it.

    @host_read("item")
    def item(self: Array) -> Any:
        ...

To interpreters they are ops like any other: a capture knows that the program looked, a fake mode refuses. A check is
the lesser form: it raises if elements are not as the next op needs them, and Python hears nothing else of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.arrays.lazy_signs import content, unwrapped
from .._core.arrays.narrow import computable, widened
from .._core.backend import to_host
from .._core.modes import THREAD
from .._core.tensor import Tensor
from .abstract.fake import DataDependentOutputException
from .interpreter import at_level, interpret
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
        if args[0]._is_wrapper:
            return at_level(self, args, args[0])
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


class Check(HostRead):
    """A kernel on arrays of the host that raises if their elements are not as the next op needs them."""

    reads = False

    def __call__(self, *args: Any) -> None:
        tensors = [unwrapped(each) if isinstance(each, Tensor) else each for each in args]
        first = tensors[self.tensor_positions[0]]
        if first._kind.dataless:
            return
        modes = THREAD.modes
        stack = modes.interpreters
        if stack and stack[-1].sees_checks:
            interpret(self, tensors, modes)
            return
        for position in self.tensor_positions:
            kind = tensors[position]._kind
            tensors[position] = computable(content(tensors[position])) if kind.indirect else tensors[position]._array
        backend = first._kind.backend
        (backend.runs.get(self) or backend.prepare(self))(*tensors)


def check(name: str) -> Callable[[Kernel], Check]:
    """Make the decorated kernel, which raises or does nothing, the op `name`."""
    return lambda kernel: Check(name, kernel)


@host_read("sizes")
def sizes(self: Array) -> tuple[int, ...]:
    """The shape of a tensor, where that depends on elements."""
    shape: tuple[int, ...] = self.shape
    return shape


@host_read("elements")
def elements(self: Array) -> Any:
    """The elements of a tensor, as an array of the host."""
    return self
