"""Which rule an op has: one of its own, by name, or the one that follows from its record's `axes`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...._core.process.locks import new_reentrant_lock
from ...._dispatch.axes import Along, Elements, Images, Last
from ...._dispatch.op import Op
from .choice import CASES, SPECIAL, Call, Case, Cases, Plan, plan_by

_FILES = ("pointwise", "reduce", "shape", "products", "network", "writing")
_loaded = False
_loading = new_reentrant_lock()
_NAMED: set[str] = set()
"""The ops with an entry from those files: `CASES` also keeps what follows from records."""


def plan_of(call: Call) -> Plan | Callable[..., Any]:
    """How to run a call: by a rule of its own, as the ops that it consists of, or by the cheapest case."""
    load()
    planned = SPECIAL.get(call.op.name)
    if planned is not None:
        return planned(call)
    if call.op.decomposition is not None and call.op.name not in CASES:
        return call.op.decomposition
    return plan_by(call, cases_of(call.op))


def cases_of(op: Op) -> Cases:
    """The ways to run `op`; that all have everything is always one more."""
    load()
    found = CASES.get(op.name)
    if found is None:
        found = CASES[op.name] = _of_family(op)
    return found


def load() -> None:
    """Read the files of rules. Another thread waits for all of them: an op whose rule is not there yet has none."""
    global _loaded
    if _loaded:
        return
    with _loading:
        for name in _FILES:
            import_module(f"{__package__}.{name}")
        if not _loaded:
            _NAMED.update(CASES, SPECIAL)
        _loaded = True


def _of_family(op: Op) -> Cases:
    """The ways to cut an op's tensors along the dimensions that its record says are independent."""
    from .network import loss, of_images
    from .pointwise import elementwise, of_last
    from .reduce import all_but

    axes = op.axes
    if isinstance(axes, Elements):
        return loss if axes.reduction else elementwise
    if isinstance(axes, Last):
        return of_last
    if isinstance(axes, Along) and not axes.extra and axes.sizes is None:
        return all_but(axes.dims)
    return of_images if isinstance(axes, Images) and axes.sizes is None else replicated


def replicated(call: Call, number: int) -> list[Case]:
    """No way to cut the tensors of an op: all processes have everything."""
    return []


def has_own_rule(op: Op) -> bool:
    """Whether `op` has a rule by its name: its record says too little, or nothing, of its dimensions."""
    load()
    return op.name in _NAMED
