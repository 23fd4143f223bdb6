"""Ops whose results nobody uses, and that do nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..program.items import Call, Item, Value, uses, values_in
from ..program.pure import is_pure


def without_dead(items: Sequence[Item], wanted: Iterable[Value]) -> list[Item]:
    """The items without those whose results nobody uses and that do nothing else."""
    used = {each.number for each in wanted}
    kept: list[Item] = []
    for item in reversed(items):
        if type(item) is Call and is_pure(item) and used.isdisjoint([each.number for each in values_in(item.results)]):
            continue
        used.update([each.number for each in uses(item)])
        kept.append(item)
    return kept[::-1]
