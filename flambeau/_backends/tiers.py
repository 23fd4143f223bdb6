"""Which of the CPU's kernels there are beside NumPy's, which always work: generated ones, those of a vendor's library.

Ops do not ask for them: lowerings (`cpu/lowerings.py`) and the functions of which kernels are made (`arrays.py`) do.

`FLAMBEAU_GENERATED=0`, or the context `numpy_only()`, leaves NumPy's alone; so does a machine without llvmlite.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._core.backend import backend_of
from .._core.process.collector import collector_paused
from .._core.process.reproducibility import REPRODUCIBILITY

FAMILIES: dict[str, Any] = {}
"""The modules that were asked for, None for those that are not there."""
_enabled = os.environ.get("FLAMBEAU_GENERATED") != "0"


def generated(family: str) -> Any:
    """The module of a family's generated kernels (`families.py` says where it is); None: there are none."""
    try:
        return FAMILIES[family]
    except KeyError:
        return FAMILIES.setdefault(family, _load(family))


def library() -> Any:
    """The kernels of the vendor's library, `cpu/onednn/kernels.py`; None: it is not installed, or not wanted."""
    try:
        return FAMILIES["library"]
    except KeyError:
        module = importlib.import_module("flambeau._backends.cpu.onednn.kernels") if _enabled else None
        return FAMILIES.setdefault("library", module if module is not None and module.available() else None)


_library_wanted, _library_by_shape = True, False


def use_library(wished: bool, by_shape: bool = False) -> None:
    """Let the vendor's library be used, or not, in all threads.

    `by_shape`: for what it computes with the same bits for any number of threads, at least.
    """
    global _library_wanted, _library_by_shape
    _library_wanted, _library_by_shape = wished, by_shape
    FAMILIES.pop("library", None)
    _leave_library()
    backend_of("cpu").forget()


def _leave_library() -> None:
    if not _library_wanted:
        module = importlib.import_module("flambeau._backends.cpu.onednn.by_shape") if _library_by_shape else None
        FAMILIES["library"] = module if module is not None and _enabled and module.available() else None


_kept: dict[str, Any] = {}
"""The families that `use_generated` has put aside."""

IN_ANY_BATCH: dict[str, str] = {
    "attention": "attention attention_gradients",
    "conv": "correlate correlate_transposed weight_gradient",
    "copy": "copy_into contiguous flipped",
    "gather": "within gathered selected selected_places embedding",
    "join": "concatenated",
    "losses": "nll_loss_gradient",
    "masks": "fill",
    "multi": "*",
    "norms": (
        "batch_norm batch_norm_backward group_norm group_norm_backward layer_norm layer_norm_backward rms_norm "
        "rms_norm_backward"
    ),
    "pointwise": "*",
    "pool": "max_pool max_pool_with_indices max_pool2d_backward",
    "recurrent": "*",
    "rows": "softmax safe_softmax softmax_backward log_softmax log_softmax_backward",
}
"""For families of which some functions give a sample the same bits in any batch, these; "*": all do."""

_NOT_PORTABLE = frozenset(("losses",))
"""Families whose functions sum up in an order that NumPy's do not have."""
_RUN_BY_NUMPY = frozenset(("attention", "conv", "multi", "norms", "pointwise", "recurrent", "rows"))
"""Families whose kernels NumPy runs at "machine" where no code can be generated; others move elements alone."""


class _SomeOf:
    """A module of which others than its chosen functions do nothing: they return None."""

    def __init__(self, module: Any, names: str) -> None:
        self.__dict__.update({name: getattr(module, name) for name in names.split()})

    def __getattr__(self, name: str) -> Any:
        return _does_nothing


def _does_nothing(*arguments: Any, **options: Any) -> None:
    """For what NumPy's kernels have to do."""


def use_generated(wished: bool) -> None:
    """Let generated kernels be used, or NumPy's alone, in all threads."""
    global _enabled
    _enabled = wished
    if wished:
        FAMILIES.clear()
        FAMILIES.update(_kept)
        _kept.clear()
    else:
        _kept.update({name: module for name, module in FAMILIES.items() if name != "library"})
        FAMILIES.clear()
        FAMILIES.update(dict.fromkeys(name for name in _kept if name not in IN_ANY_BATCH))
    use_library(_library_wanted, _library_by_shape)


def free_idle_memory() -> None:
    """Give back what the vendor's library, if it is in use, keeps between its calls."""
    if (module := FAMILIES.get("library")) is not None:
        module.free_idle_memory()


def wanted() -> bool:
    """Whether other kernels than NumPy's may run."""
    return _enabled


def available() -> bool:
    """Whether code can be generated here, and is wanted."""
    return _enabled and importlib.util.find_spec("llvmlite") is not None


def _load(family: str) -> Any:
    if REPRODUCIBILITY.machine and (family in _NOT_PORTABLE or not (compiles() or family in _RUN_BY_NUMPY)):
        return None
    if REPRODUCIBILITY.product is not None and family in IN_ANY_BATCH:
        names = IN_ANY_BATCH[family]
        module = _imported(family)
        return module if names == "*" else _SomeOf(module, names)
    return _imported(family) if available() else None


def compiles() -> bool:
    """Whether kernels become machine code here; else NumPy runs those that it can run with the same bits."""
    from .._codegen.ir import COMPILES  # imports the code generator, which `import flambeau` does not

    return COMPILES


def _imported(family: str) -> Any:
    from .families import PLACES

    with collector_paused():
        module = importlib.import_module(f"flambeau._backends.cpu.{PLACES[family]}")
        if compiles():  # large results are to come from the pool
            importlib.import_module("flambeau._backends.cpu.memory.allocator").start()
    return module


@contextmanager
def numpy_only() -> Iterator[None]:
    """Run NumPy's kernels alone, in all threads: the reference that the others are compared with."""
    from .families import PLACES

    global _enabled
    before, _enabled = _enabled, False
    families = dict(FAMILIES)
    FAMILIES.update(dict.fromkeys((*PLACES, *FAMILIES)))
    backend_of("cpu").forget()
    try:
        yield
    finally:
        _enabled = before
        FAMILIES.clear()
        FAMILIES.update(families)
        _leave_library()
        backend_of("cpu").forget()
