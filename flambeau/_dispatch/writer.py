"""Ops that change their arguments and have no results: running statistics, gradients added up, steps of optimizers.

    @writer("move_running_statistics", writes=("running_mean", "running_var"))
    def move(running_mean: Array, running_var: Array, ...) -> None:
        ...

What autograd allows, and what becomes of the history of the tensors that change, is the caller's affair: see
`changes/inplace.py`. Here the change happens, and their versions count it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.arrays.lazy_signs import content, overwrite
from .._core.arrays.narrow import computable
from .._core.modes import THREAD
from .changes.history import end_change
from .interpreter import at_level, interpret
from .op import Kernel, Op, tensor_parameters

_READ_BITS = ("copy_", "fill_")


class Writer(Op):
    """A kernel that writes into some of its arrays."""

    def __init__(self, name: str, kernel: Kernel, writes: tuple[str, ...], counted: bool, draws: bool) -> None:
        self.enter(name)
        self.kernel = kernel
        self.parameters, self.tensor_positions, self.list_position = tensor_parameters(kernel)
        self.writes = tuple([self.parameters.index(each) for each in writes])
        self.of_one = self.tensor_positions == (0,) == self.writes and self.list_position is None
        """Whether the first argument is the only tensor."""
        self.counted = counted
        """Whether the change is one of version: PyTorch leaves that out where no derivative can be misled."""
        self.draws = draws
        self.__doc__ = kernel.__doc__

    def __call__(self, *args: Any) -> None:
        modes = THREAD.modes
        if modes.interpreters:
            interpret(self, args, modes)
            return
        target = args[self.writes[0]]
        if target._is_wrapper:
            at_level(self, args, target)
            return
        kind = target._kind
        if not kind.dataless:
            run = kind.runs.get(self) or kind.backend.prepare(self)
            if self.of_one and not kind.indirect:
                run(target._array, *args[1:])
                if self.counted:
                    end_change(target)
                return
            arrays = list(args)
            indirect = False
            for position in self.tensor_positions:
                tensor = args[position]
                if tensor is not None:
                    if tensor._kind.indirect:
                        indirect = True
                        array = content(tensor)
                        # A kernel that draws knows every type, and so do those that store and fill.
                        arrays[position] = array if self.draws or self.name in _READ_BITS else computable(array)
                    else:
                        arrays[position] = tensor._array
            if self.list_position is not None:
                arrays[self.list_position] = [content(each) for each in args[self.list_position]]
            run(*arrays)
            if indirect:
                self._take_back(args, arrays)
        if self.counted:
            for position in self.writes:
                end_change(args[position])

    def _take_back(self, args: Any, arrays: list[Any]) -> None:
        """Where a copy of the elements was changed, because signs are still to be taken: store it."""
        for position in self.writes:
            if position != self.list_position and arrays[position] is not args[position]._array:
                overwrite(args[position], arrays[position])


def writer(name: str, writes: tuple[str, ...], counted: bool = True, draws: bool = False) -> Callable[[Kernel], Writer]:
    """Make the decorated kernel, which changes the arrays of the parameters `writes`, the op `name`."""
    return lambda kernel: Writer(name, kernel, writes, counted, draws)
