"""`@kernel`: a function that writes code becomes one that returns compiled kernels.

    @kernel
    def scale(b: Builder, arguments: Arguments, dtype: str) -> None:
        out, x, factor = arguments.array(0), arguments.array(1), arguments.float32(2)
        ...

    scale("float32")(out, x, 2.0)

The parameters after the second are part of the kernel's name: strings, numbers, tuples and what has a stable `repr`. A
kernel is written, compiled and linked once for each choice of them, or loaded from disk. It returns its first argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .._core.process.locks import new_reentrant_lock
from .arrays import Arguments, give_back_first
from .build import Builder
from .ir import COMPILES, ir
from .machine.engine import engine
from .on_numpy import kernels as on_numpy
from .types import I64, POINTER

Compiled = Callable[..., Any]

KERNELS: dict[str, Kernel] = {}
"""Every kernel by name."""

_lock = new_reentrant_lock()


class Kernel:
    """A family of kernels: one for each choice of parameters."""

    def __init__(self, write: Callable[..., None]) -> None:
        self.write = write
        self.name = write.__name__
        self.__doc__ = write.__doc__
        self._compiled: dict[tuple[Any, ...], Compiled] = {}
        KERNELS[self.name] = self

    def __call__(self, *parameters: Any) -> Compiled:
        found = self._compiled.get(parameters)
        return found if found is not None else self._make(parameters)

    def _make(self, parameters: tuple[Any, ...]) -> Compiled:
        with _lock:
            found = self._compiled.get(parameters)
            if found is None and not COMPILES:
                found = self._compiled[parameters] = on_numpy.found(self.name, parameters)
            elif found is None:
                loaded = engine().load(self.name, parameters, lambda: self.module(*parameters), [self.name])
                found = self._compiled[parameters] = _python_function(loaded[self.name], self.name)
            return found

    def module(self, *parameters: Any) -> ir.Module:
        """The code as it is written, before LLVM improves it."""
        module = engine().new_module(self.name)
        b = Builder(module, self.name, POINTER, [POINTER, POINTER, I64])
        self.write(b, Arguments(b), *parameters)
        give_back_first(b)
        return module

    def llvm_ir(self, *parameters: Any) -> str:
        """The improved code in LLVM's intermediate representation."""
        return str(engine().optimised(self.module(*parameters)))

    def assembly(self, *parameters: Any) -> str:
        """The machine code as text."""
        return engine().assembly(self.module(*parameters))

    def compiled(self) -> list[tuple[tuple[Any, ...], Compiled]]:
        """The kernels that this process has used so far, each with its parameters."""
        return list(self._compiled.items())

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def kernel(write: Callable[..., None]) -> Kernel:
    """Make a function that writes code a `Kernel`."""
    return Kernel(write)


class _MethodDefinition(ctypes.Structure):
    """Python's description of a built-in function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_FAST_CALL = 0x80
_definitions: list[_MethodDefinition] = []


def _python_function(address: int, name: str) -> Compiled:
    definition = _MethodDefinition(name.encode(), address, _FAST_CALL, None)
    _definitions.append(definition)  # Python keeps a pointer to it
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    function: Compiled = new(ctypes.addressof(definition), None, None)
    return function
