"""Utilities around training."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .._core.names.absent import Table
from .._core.tensor import Tensor
from . import checkpoint, hooks

if TYPE_CHECKING:  # for editors and type checkers, which do not run `__getattr__` below
    from . import data as data
    from . import training_state as training_state
    from .training_state import TrainingState as TrainingState

__all__ = [
    "TrainingState", "checkpoint", "data", "dlpack", "hooks", "set_module", "swap_tensors", "training_state"
]  # fmt: skip

_table = (
    Table(__name__)
    .submodules(
        "_contextlib _device _foreach_utils _import_utils _python_dispatch _pytree backcompat "
        "backend_registration benchmark bundled_inputs collect_env compare cpp_backtrace cpp_extension data "
        "debug_log deterministic dlpack file_baton flop_counter ledger mkldnn mobile_optimizer model_zoo "
        "module_tracker serialization summary tensorboard throughput_benchmark training_state viz weak"
    )
    .elsewhere("TrainingState", "utils.training_state")
    .elsewhere("nan_finder", "utils._nan_finder")
    .elsewhere("ThroughputBenchmark", "utils.throughput_benchmark")
    .elsewhere("get_cpp_backtrace", "utils.cpp_backtrace")
    .elsewhere("generate_methods_for_privateuse1_backend rename_privateuse1_backend", "utils.backend_registration")
)
__getattr__, __dir__ = _table.parts()


def set_module(obj: Any, mod: str) -> None:
    """Let a class or function say that it stands in another module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


_SLOTS = ("_array", "_kind", "_counter", "_requires_grad", "_grad_fn", "_output_nr", "_grad", "_view", "_extra")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let two tensors change places: each object gets the other's memory, history, class and attributes."""
    for tensor in (t1, t2):
        if tensor._grad_fn is not None:
            raise RuntimeError("Cannot swap tensors that are results of recorded operations: swap leaves")
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefcount(tensor):
            raise RuntimeError(
                f"Cannot swap {name} because it has weakref associated with it: whoever holds it would find the other"
            )
    for slot in _SLOTS:
        first, second = getattr(t1, slot), getattr(t2, slot)
        setattr(t1, slot, second)
        setattr(t2, slot, first)
    first_attributes, second_attributes = dict(vars(t1)), dict(vars(t2))
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for tensor, attributes in ((t1, second_attributes), (t2, first_attributes)):
        vars(tensor).clear()
        vars(tensor).update(attributes)
