"""`Backend`: how ops run on the arrays of one type of device, as far as all devices have that in common.

A backend holds an array library and a table of lowerings: for the name of an op a function with the arguments of the
op's kernel, which returns None for what it does not do. Then the reference kernel runs. Whoever has faster kernels
pushes them into the table; ops never ask.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

LARGE = int(os.environ.get("FLAMBEAU_LARGE", "4096"))
"""From so many elements on elementwise kernels are generated ones; below, a call of NumPy's is as quick.

Whether a generated kernel runs depends on sizes, dtypes and layouts alone, never on what ran before: the same call
gives the same bits, in every process. Kernels that replace many calls of NumPy's, as those of normalisations do, run
for the smallest inputs too: that starts the compiler (some 70 ms), and compiles a kernel that is not on disk yet (20
to 50 ms).
"""

Kernel = Callable[..., Any]
Find = Callable[[str], Kernel | None]
"""Finds the lowering of an op by the op's name."""


def _no_functions(family: str) -> None:
    """What a backend has that has NumPy's functions alone."""


class Backend:
    """What runs ops on one type of device."""

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type
        self.runs: dict[Any, Kernel] = {}
        """For each op that ran here, what runs it."""
        self.lowerings: dict[str, Find] = {}
        """For the name of an op what finds its lowering: most are never asked for, and finding may start a compiler."""

        self.array_functions: Callable[[str], Any] = _no_functions
        """The module of the faster functions on arrays of a family ("random", ...); None: there are none."""

        self.in_one_pass: Kernel | None = None
        """Computes all gradients that a node hands on at once, if it can: `(node, grad, saved values, edges)`."""

    def push(self, lowerings: Mapping[str, Find]) -> None:
        """Take lowerings over, by the names of their ops."""
        self.lowerings.update(lowerings)
        self.forget()

    def forget(self) -> None:
        """Look for lowerings anew: they have changed."""
        self.runs.clear()

    def lowering(self, name: str) -> Kernel | None:
        """The lowering of the op called `name`, if there is one here and now."""
        find = self.lowerings.get(name)
        return None if find is None else find(name)

    def prepare(self, op: Any) -> Kernel:
        """What runs `op` on arrays; it is kept in `runs`."""
        lowering = self.lowering(op.name)
        kernel: Kernel = op.kernel
        run = kernel
        if lowering is not None:

            def run(*args: Any) -> Any:
                done = lowering(*args)
                return kernel(*args) if done is None else done

        self.runs[op] = run
        return run

    def asarray(self, value: Any) -> Any:
        """The result of a kernel as an array: array libraries return numbers where there are no dimensions."""
        return np.asarray(value)


_BACKENDS: dict[str, Backend] = {}


def backend_of(device_type: str) -> Backend:
    """The backend of the devices of a type."""
    found = _BACKENDS.get(device_type)
    if found is None:
        found = _BACKENDS.setdefault(device_type, Backend(device_type))
    return found


def faster(family: str) -> Any:
    """The CPU's functions on arrays of a family beside NumPy's: compiled bodies of elementwise ops, random words."""
    return backend_of("cpu").array_functions(family)


def install(backend: Backend) -> Backend:
    """Let `backend` be the one of its devices; before any tensor is there."""
    if backend.device_type in _BACKENDS:
        raise RuntimeError(f"{backend.device_type} has a backend already")
    _BACKENDS[backend.device_type] = backend
    return backend
