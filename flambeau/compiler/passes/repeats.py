"""Ops that are given the same arguments again give the same results again."""

from __future__ import annotations

from collections.abc import Sequence

from ..program.items import Call, Item, Value, values_in
from ..program.pure import is_pure
from .memory import Memory, renamed, same_value


def without_repeats(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items without ops that have been there before with the same arguments."""
    memory: Memory | None = None  # most programs do nothing twice
    names: dict[int, Value] = {}
    known: dict[tuple[object, ...], list[Call]] = {}
    found: list[Item] = []
    for item in items:
        item = renamed(item, names)
        if type(item) is Call and is_pure(item) and type(item.results) is Value:
            like = known.setdefault((item.op, *values_in(item.args)), [])
            before = next((each for each in like if same_value(each.args, item.args)), None)
            if before is None:
                like.append(item)
            elif _can_be_one(before, item, memory := memory or Memory(items, wanted)):
                names[item.results.number] = before.results
                memory.join(before.results.number, item.results.number)
                continue
        found.append(item)
    return found


def _can_be_one(before: Call, again: Call, memory: Memory) -> bool:
    """Whether nobody changes either result, or what they were made of, and nobody else gets to see them."""
    first, second = before.results.number, again.results.number
    since = memory.made.get(first, -1)
    involved = [first, second, *[each.number for each in values_in(again.args)]]
    if any(memory.changes_after(each, since) for each in involved):
        return False
    near = memory.beside(first) | memory.beside(second)
    return memory.is_same_window(first, second) and not any(map(memory.is_handed_out, near))
