"""The rule of every op under `vmap`: one of its own, by the op's name, or the one that follows from its record.

A rule is called with the level, the op and its arguments, and works on values, outside of the level. A decomposition is
called with the arguments alone, inside the level: it says the op in other ops.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..._dispatch.composite import Composite
from ..._dispatch.op import Op
from .by_axes import rule_by_axes
from .level import Rule

RULES: dict[str, tuple[bool, Callable[..., Any]]] = {}
"""By the name of an op: whether it is a decomposition, and the function. Ops whose records say it need no entry."""

_FAMILIES = ("pointwise", "shape", "reduce", "index", "linalg", "image", "network", "loss", "random")
_loaded = False
_NAMED: set[str] = set()
"""The ops with an entry from those files: `RULES` also keeps what follows from records."""


def rule_of(op: Op) -> tuple[bool, Callable[..., Any]]:
    """How `op` runs under `vmap`."""
    found = RULES.get(op.name)
    if found is None:
        _load()
        found = RULES.get(op.name)
    if found is None:
        found = RULES[op.name] = _general(op)
    return found


def _load() -> None:
    global _loaded
    if not _loaded:
        for family in _FAMILIES:
            import_module(f"{__package__}.{family}")
        _NAMED.update(RULES)
        _loaded = True


def _general(op: Op) -> tuple[bool, Callable[..., Any]]:
    if op.axes is not None:
        return False, rule_by_axes(op)
    if op.draws:
        from .random import drawn, filled

        return False, filled if op.writes else drawn
    if isinstance(op, Composite):
        assert op.decomposition is not None
        return True, op.decomposition
    from .loop import loop

    return False, loop


def uses_loop(op: Op) -> bool:
    """Whether `op` runs example by example."""
    from .loop import loop

    return rule_of(op)[1] is loop


def has_own_rule(op: Op) -> bool:
    """Whether `op` has a rule by its name: its record says too little, or nothing, of its dimensions."""
    _load()
    return op.name in _NAMED


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of the ops `names`, of which a text may have several."""

    def enter(function: Rule) -> Rule:
        for name in " ".join(names).split():
            assert name not in RULES, name
            RULES[name] = False, function
        return function

    return enter


def decomposition(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function, which says the ops `names` in others, what runs in their place."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in " ".join(names).split():
            assert name not in RULES, name
            RULES[name] = True, function
        return function

    return enter
