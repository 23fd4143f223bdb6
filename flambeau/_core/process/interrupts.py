"""Functions that an interrupt does not stop before their first statement.

Python raises `KeyboardInterrupt` where a function begins, where a loop turns back and after a call of a function
written in C. So a context whose `__exit__` is written in Python may be left without having been closed: the interrupt
is raised as `__exit__` begins. CPython skips the first of these checks where a frame resumes inside `yield from`, which
the argument of its `RESUME` instruction says; `uninterrupted` sets this argument.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_RESUME, _UNIT = dis.opmap.get("RESUME"), 2
"""The instruction that a function begins with, from Python 3.11 on; how many bytes an instruction has."""
_AFTER_YIELD_FROM = 2
"""The least argument of `RESUME` with which CPython does not look for signals."""


def uninterrupted(function: Function) -> Function:
    """Let no interrupt stop `function` as it begins: it comes at the next check, in the function or after it.

    A function without loops and without calls of anything but other such functions runs as a whole or not at all.
    """
    if _RESUME is None or not isinstance(function, FunctionType):  # a tool may have compiled it: there is no bytecode
        return function
    code = function.__code__
    resume = code.co_code[::_UNIT].find(_RESUME) * _UNIT  # before anything that could look like it
    if resume >= 0 and code.co_code[resume + 1] == 0:
        changed = bytearray(code.co_code)
        changed[resume + 1] = _AFTER_YIELD_FROM
        function.__code__ = code.replace(co_code=bytes(changed))
    return function


class Restoring:
    """A context that changes something, and puts it back however it is left, by an interrupt too.

    `change` and `restore` of a subclass may be stopped anywhere by an interrupt: `restore` then runs again, so it says
    what things are to be and not by how much they change.
    """

    __slots__ = ()

    def change(self) -> Any:
        """What the context begins with; its result is that of the `with` statement."""
        raise NotImplementedError

    def restore(self) -> None:
        """Put back what the context changed."""
        raise NotImplementedError

    @uninterrupted
    def __enter__(self) -> Any:
        try:
            return self.change()
        except BaseException:
            self.restore()
            raise

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        try:
            self.restore()
        except BaseException:
            self.restore()
            raise
