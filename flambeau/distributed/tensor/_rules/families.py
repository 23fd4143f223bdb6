"""Which rule an op has: one of its own, or that of its family."""

from __future__ import annotations

from importlib import import_module

from ...._dispatch.elementwise import Elementwise
from ...._dispatch.op import Op
from ....func._batching import rules as batching
from .choice import CASES, Call, Case, Cases

_FILES = ("pointwise", "reduce", "shape", "products", "network", "writing")
_loaded = False


def cases_of(op: Op) -> Cases:
    """The ways to run `op`; that all have everything is always one more."""
    load()
    found = CASES.get(op.name)
    if found is None:
        found = CASES[op.name] = _of_family(op)
    return found


def load() -> None:
    """Read the files of rules."""
    global _loaded
    if not _loaded:
        _loaded = True
        for name in _FILES:
            import_module(f"{__package__}.{name}")


def _of_family(op: Op) -> Cases:
    """By what `vmap` knows of an op: whether its elements, or all but some of its dimensions, are independent."""
    from .pointwise import elementwise
    from .reduce import all_but

    if isinstance(op, Elementwise):
        return elementwise
    decomposes, rule = batching.rule_of(op)
    if not decomposes:
        if rule in (batching.as_it_is, batching.aligned, batching.broadcast):
            return elementwise
        names = getattr(rule, "dims", None)
        if names is not None:
            return all_but(names)
    return _none


def _none(call: Call, number: int) -> list[Case]:
    return []
