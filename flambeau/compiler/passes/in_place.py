"""Ops in place as ops that make new arrays: who comes later reads the new one.

In-place ops of Python are recorded as they run: an op that makes a new array, and a copy into the old one. The copy is
left out where the old array is the program's own, and nobody who knew it under another name looks at it later.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program.items import Call, Item, Value, values_in
from .memory import Memory, with_names


def without_changes(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items without the copies into arrays that can be replaced."""
    if not any(type(each) is Call and each.op.name == "copy_" for each in items):
        return list(items)
    memory = Memory(items, wanted)
    names: dict[int, Value] = {}
    found: list[Item] = []
    for position, item in enumerate(items):
        item = with_names(item, names)  # an op that gives back the array it was given has a replaced value as result
        if type(item) is Call and item.op.name == "copy_" and _is_replaceable(item, position, memory, names):
            target, source = values_in(item.args)
            for number, value in names.items():
                if value == target:
                    names[number] = source
            names[target.number] = source
            memory.join(target.number, source.number)
        else:
            found.append(item)
    return found


def _is_replaceable(copy: Call, position: int, memory: Memory, names: dict[int, Value]) -> bool:
    """Whether the source of a copy may stand for its target from now on."""
    values = values_in(copy.args)
    if len(values) != 2 or copy.args[:2] != tuple(values):
        return False
    target, source = (each.number for each in values)
    if target not in memory.made or source not in memory.made or not memory.is_same_window(target, source):
        return False
    old = {target, *[number for number, value in names.items() if value.number == target]}
    if any(map(memory.is_handed_out, old)):
        return False
    near, new = memory.beside(target), memory.beside(source)
    if near is new or not memory.made.keys() >= near | new:
        return False
    if any(_is_seen(each, position, memory) for each in near - old):
        return False
    changes = memory.changes_after(target, position) or memory.changes_after(source, position)
    return not changes or not any(_is_seen(each, position, memory) for each in new)


def _is_seen(number: int, position: int, memory: Memory) -> bool:
    """Whether a value that exists at `position` is looked at later."""
    return memory.made.get(number, -1) < position and memory.is_used_after(number, position)
