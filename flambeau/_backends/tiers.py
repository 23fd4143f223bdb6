"""Which kernels run: NumPy's, which always work, or faster ones where there are any.

An op's kernel asks for the generated kernels of its family, and goes on with NumPy if there are none:

    if self.size >= LARGE and (rows := generated("rows")) is not None:
        done = rows.softmax(self, dim)
        if done is not None:
            return done

`FLAMBEAU_GENERATED=0`, or the context `numpy_only()`, leaves NumPy's alone; so does a machine without llvmlite.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LARGE = int(os.environ.get("FLAMBEAU_LARGE", "4096"))
"""From so many elements on elementwise kernels are generated ones; below, a call of NumPy's is as quick. The choice
depends on sizes and dtypes alone, never on what ran before: the same call gives the same bits."""

_families: dict[str, Any] = {}
_enabled = os.environ.get("FLAMBEAU_GENERATED") != "0"


def generated(family: str) -> Any:
    """The module of a family's generated kernels, `_backends/cpu/<family>.py`; None: there are none."""
    try:
        return _families[family]
    except KeyError:
        return _families.setdefault(family, _load(family))


# Small inputs. A kernel call costs a fraction of the NumPy calls that it replaces, so that kernels pay for the smallest
# tensors too; but starting LLVM takes some 70 ms, and compiling a kernel that is not on disk yet 20 to 50 ms, which a
# short script would notice. So inputs below LARGE use what is there: kernels that this process has made, or that lie
# on disk, once LLVM runs. What is wanted again and again is made all the same: then it is a loop, and will pay.

PATIENCE = 200
"""A kernel is compiled for small inputs when they have wanted it so often."""
LONG_PATIENCE = 2000
"""LLVM is started for small inputs when they have wanted kernels so often."""

_wishes: dict[Any, int] = {}
_running = False


def generated_for(family: str, size: int) -> Any:
    """`generated`, for an input of `size` elements: None also where it is too small to start the compiler for."""
    if size < LARGE and not _running and not _worth_starting():
        return None
    try:
        return _families[family]
    except KeyError:
        return _families.setdefault(family, _load(family))


def prepared(kernel: Any, size: int, *parameters: Any) -> Any:
    """A kernel for an input of `size` elements; None: it would have to be compiled, for too small an input."""
    found = kernel.ready(parameters)
    if found is not None:
        return found
    if size >= LARGE:
        return kernel(*parameters)
    wishes = _wishes[kernel.name, parameters] = _wishes.get((kernel.name, parameters), 0) + 1
    if wishes == 1:
        return kernel.from_disk(parameters)
    return kernel(*parameters) if wishes > PATIENCE else None


def first_by(family: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let an op's kernel be preceded by the family's function `name`: it goes on where that returns None.

    Outermost among decorators: generated kernels take half precision as it is.
    """

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(kernel)
        def run(first: Any, *rest: Any) -> Any:
            module = generated_for(family, first.size)
            if module is not None:
                done = getattr(module, name)(first, *rest)
                if done is not None:
                    return done
            return kernel(first, *rest)

        return run

    return decorate


def _worth_starting() -> bool:
    """Whether LLVM runs already, or small inputs would have profited often enough."""
    global _running
    wishes = _wishes[None] = _wishes.get(None, 0) + 1
    engine = sys.modules.get("flambeau._codegen.engine")
    _running = (engine is not None and engine._ENGINE is not None) or wishes > LONG_PATIENCE
    return _running


def available() -> bool:
    """Whether code can be generated here, and is wanted."""
    return _enabled and importlib.util.find_spec("llvmlite") is not None


def _load(family: str) -> Any:
    if not available():
        return None
    module = importlib.import_module(f"flambeau._backends.cpu.{family}")
    importlib.import_module("flambeau._backends.cpu.allocator").start()  # large results are to come from the pool
    return module


@contextmanager
def numpy_only() -> Iterator[None]:
    """Run NumPy's kernels alone, in all threads: the reference that the others are compared with."""
    global _enabled
    before, _enabled = _enabled, False
    families = dict(_families)
    _families.update(dict.fromkeys(_families))
    try:
        yield
    finally:
        _enabled = before
        _families.clear()
        _families.update({name: module for name, module in families.items() if module is not None})
