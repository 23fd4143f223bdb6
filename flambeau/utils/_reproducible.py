"""`flambeau.reproducible`: the same bits again, for any number of threads, in any batch and on any processor."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends import portable, tiers
from .._core.backend import WHEN_INSTALLED, Backend, devices_backends
from .._core.process.determinism import DETERMINISM
from .._core.process.reproducibility import LEVELS, REPRODUCIBILITY, NotKept
from .._dispatch.elementwise import Elementwise
from .._dispatch.op import OPS
from .._dispatch.public.registry import load_all

VARIABLE = "FLAMBEAU_REPRODUCIBLE"
_FIXED = ("threads", "batch", "machine")
_IN_ANY_BATCH = ("batch", "machine")


class reproducible:
    """Keep results the same to the bit: a switch, and a context that restores what held before.

    The levels include each other:

    - `"run"`: the same program gives the same bits again on the same machine with the same number of threads. This is
      what `use_deterministic_algorithms(True)` promises in PyTorch, and it is switched on.
    - `"threads"`: the number of threads does not matter either. Products, convolutions and all sums are computed by
      generated kernels and by calls of libraries that use one thread each; both divide their work in the same way for
      any number of threads. The vendor's library is used for products of float32 alone.

    - `"batch"`: what a sample gives depends neither on the other samples of its batch, nor on its place among them, nor
      on whether the batch was split; a token that is decoded with a cache gives what it gives in the whole sequence.
      Products and sums run in one fixed order, and each op by one kernel at every size.
      `batch_norm` in training and dropout raise. Gradients of parameters are sums over the batch, whose first dimension
      is that of the samples. They are summed up in a tree: `DistributedDataParallel` on 1, 2, 4, ... processes, each
      with its contiguous part of a global batch, gives the same parameters. What it cannot keep raises.
    - `"machine"`: the processor does not matter either, x86-64 or ARM, with AVX-512 or without, nor whether code can be
      generated; where it cannot, NumPy runs the same steps, slowly. Decompositions are slow: they
      consist of elementary operations. `eig`, Fourier transforms, products of complex numbers and random numbers drawn
      by rejection raise.

    On CUDA levels hold up to `"batch"`; gradients of weights are no trees there.

    None switches all levels off. What cannot be kept raises: ops on CUDA at `"machine"`, and those of libraries that
    choose the order of sums by the batch at `"batch"`; a linear algebra library whose threads cannot be limited. The
    switch holds for all threads of the process; it should not be used while other threads run ops. The environment
    variable `FLAMBEAU_REPRODUCIBLE` sets the level from the start.

    Args:
        level: "run", "threads", "batch", "machine", or None.

    >>> with flambeau.reproducible("threads"):
    ...     flambeau.reproducible.level()
    'threads'
    >>> flambeau.reproducible.level() is None
    True
    """

    def __init__(self, level: str | None) -> None:
        if level is not None and level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(map(repr, LEVELS))} or None, but got {level!r}")
        self._before = REPRODUCIBILITY.level
        self._deterministic = DETERMINISM.asked, DETERMINISM.warn_only
        _set(level)

    def __enter__(self) -> reproducible:
        return self

    def __exit__(self, *exception: object) -> None:
        _set(self._before)
        DETERMINISM.set(*self._deterministic, DETERMINISM.fill_wanted)

    def __repr__(self) -> str:
        return f"reproducible({REPRODUCIBILITY.level!r})"

    @staticmethod
    def level() -> str | None:
        """The level that holds; None: there is none."""
        return REPRODUCIBILITY.level


def _set(level: str | None) -> None:
    before = REPRODUCIBILITY.level
    fixed, was_fixed = level in _FIXED, before in _FIXED
    if level == "batch" and not (tiers.compiles() if before in _IN_ANY_BATCH else tiers.available()):
        _refuse_without_generated()
    if fixed and not was_fixed:
        _limit_libraries(level)
    elif was_fixed and not fixed:
        _free_libraries()
    if fixed and level != before:
        tiers.use_library(False, by_shape=level == "threads")
    if level != before and before in _IN_ANY_BATCH:
        portable.end()
        _fix_orders(False)
    REPRODUCIBILITY.level, REPRODUCIBILITY.machine = level, level == "machine"
    if level != before and level in _IN_ANY_BATCH:
        _fix_orders(True)
        if level == "machine":
            load_all()
            portable.begin()
    if level is not None:
        DETERMINISM.set(True, False, DETERMINISM.fill_wanted)
    elif before is not None:
        DETERMINISM.set(False, False, DETERMINISM.fill_wanted)
    _tell_devices()


def _refuse_without_generated() -> None:
    raise RuntimeError(
        'reproducible("batch") cannot be kept here: its products are generated kernels, which are missing or '
        'switched off. `flambeau info` says what to install; or use reproducible("threads"), or "machine", which is '
        "slow here"
    )


def _fix_orders(fixed: bool) -> None:
    """Let products and sums run in one fixed order and all else by NumPy's kernels, or all as ever."""
    if fixed:
        from .._backends.cpu.linalg import fixed_order, over_samples

        REPRODUCIBILITY.product, REPRODUCIBILITY.total = fixed_order.product, over_samples.total
        REPRODUCIBILITY.samples = over_samples
    else:
        REPRODUCIBILITY.product = REPRODUCIBILITY.total = REPRODUCIBILITY.samples = None
    tiers.use_generated(not fixed)
    for op in OPS.values():
        if isinstance(op, Elementwise):  # which of its bodies runs depends on it
            op.table.clear()
            op.mixed.clear()


def _limit_libraries(level: str | None) -> None:
    from .._backends.cpu.linalg import blas

    if not blas.limit_to_one_thread() and level != "machine":  # which uses no such library
        raise RuntimeError(
            'reproducible("threads") cannot be kept here: NumPy\'s linear algebra library is not OpenBLAS, and cannot '
            'be told to use one thread. Install NumPy from PyPI, or use reproducible("run")'
        )


def _free_libraries() -> None:
    from .._backends.cpu.linalg import blas

    blas.lift_limit()
    tiers.use_library(True)


def _tell_devices(backend: Backend | None = None) -> None:
    """Let ops on other devices run at the level, or raise where their device does not keep it."""
    level = REPRODUCIBILITY.level
    for each in devices_backends() if backend is None else [backend]:
        if each.array_class is np.ndarray:
            continue
        for name in ("prepare", "first_try"):
            each.__dict__.pop(name, None)
            if level is not None and level not in each.kept_levels:
                each.__dict__[name] = _refuse
            elif level in _IN_ANY_BATCH:
                each.__dict__[name] = functools.partial(_named, each, getattr(each, name))
        each.forget()


def _refuse(op: Any) -> Any:
    raise RuntimeError(
        f"{op.name} on this device is not kept reproducible: reproducible({REPRODUCIBILITY.level!r}) holds for the "
        "CPU. Run it there, or call flambeau.reproducible(None) before"
    )


def _named(backend: Backend, prepare: Callable[[Any], Callable[..., Any]], op: Any) -> Callable[..., Any]:
    """What the backend runs for `op`; where it cannot keep the level, the error names the op."""
    run, name = prepare(op), op.name

    def kept(*args: Any) -> Any:
        try:
            return run(*args)
        except NotKept as error:
            raise RuntimeError(
                f"{name} on this device cannot be kept by reproducible({REPRODUCIBILITY.level!r}): it needs "
                f'{error.what}. Use reproducible("threads"), run it on the CPU, or call flambeau.reproducible(None) '
                "before"
            ) from None

    for table in (backend.runs, backend.tries):
        if table.get(op) is run:
            table[op] = kept
    return kept


WHEN_INSTALLED.append(_tell_devices)


def _start() -> None:
    """Take the level that the environment asks for."""
    asked = os.environ.get("FLAMBEAU_REPRODUCIBLE")
    if asked:
        if asked not in LEVELS:
            raise ValueError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, but is {asked!r}")
        _set(asked)


_start()
