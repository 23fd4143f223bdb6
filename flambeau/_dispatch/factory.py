"""Ops that make tensors of nothing: memory, constants, data from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.kind import Kind, kind_of_array
from .._core.modes import THREAD
from .._core.tensor import Tensor
from .interpreter import interpret
from .op import Kernel, Op, parameter_names


class Factory(Op):
    """A kernel that makes an array; the last argument is the kind of the tensor."""

    def __init__(self, name: str, kernel: Kernel) -> None:
        self.enter(name)
        self.kernel = kernel
        self.parameters = parameter_names(kernel)
        self.__doc__ = kernel.__doc__

    def __call__(self, *args: Any) -> Tensor:
        modes = THREAD.modes
        if modes.interpreters:
            made: Tensor = interpret(self, args, modes)
            return made
        counter: Any = None if modes.inference else [0, None]
        return Tensor._from_parts((self.kernel(*args), args[-1], counter))


def constant_beside(array: Any, source: Tensor) -> Tensor:
    """A tensor over `array`, which holds numbers that depend on no tensor, on the device of `source`."""
    return constant(array, kind_of_array(array.dtype, source._kind.device))


def factory(name: str) -> Callable[[Kernel], Factory]:
    """Make the decorated kernel the op `name`."""
    return lambda kernel: Factory(name, kernel)


@factory("constant")
def constant(array: Any, kind: Kind) -> Any:
    """A tensor of data from outside."""
    if kind.dataless:
        from .._core.arrays.abstract import meta_array

        return meta_array(array)
    return array if type(array) is kind.backend.array_class else kind.backend.from_host(array)
