"""Copies that nobody could tell from what they are copies of.

A copy for the program's own use is the array itself, as long as nobody changes either. A gradient is copied where the
array might be seen by somebody else; in a program it is known who sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program.items import Call, Item, Value
from .memory import Memory, renamed, with_names

_COPIES = frozenset(("clone", "contiguous_clone", "copied_like"))


def without_copies(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items without copies that are not needed."""
    if not any(type(each) is Call and each.op.name in _COPIES for each in items):
        return list(items)
    memory = Memory(items, wanted)
    given_back = {each.number for each in wanted}
    names: dict[int, Value] = {}
    copies: dict[int, Value] = {}
    """The originals that are given back: they get the names of their copies."""
    found: list[Item] = []
    for position, item in enumerate(items):
        item = renamed(item, names)
        if type(item) is Call and item.op.name in _COPIES and type(item.results) is Value:
            original = _original(item.args[0], item.results, position, memory)
            if original is not None:
                names[item.results.number] = original
                memory.join(original.number, item.results.number)
                if item.results.number in given_back:
                    copies[original.number] = item.results
                continue
        found.append(item)
    return [with_names(each, copies) for each in found]


def _original(source: Value, copy: Value, position: int, memory: Memory) -> Value | None:
    """What can stand for a copy; None: nothing can."""
    if not memory.is_same_window(source.number, copy.number):
        return None
    if not memory.is_handed_out(copy.number):
        changes = memory.changes_after(source.number, position) or memory.changes_after(copy.number, position)
        near = memory.beside(source.number)
        return None if changes or any(map(memory.is_handed_out, near)) else source
    near = memory.beside(source.number)
    if any(each not in memory.made or memory.is_used_after(each, position) for each in near):
        return None
    owner = min(near, key=lambda each: memory.made[each])
    return Value(owner) if memory.is_at_same_place(owner, source.number) else None
