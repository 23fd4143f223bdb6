"""Heads of keys and values that are repeated for attention: the op can share them, and need not be given copies.

Models whose queries share keys repeat these before they call attention. For a few queries, as there are when text is
generated, the copies take longer than attention itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..capture.abstract_arrays import is_on_host
from ..program.items import Call, Item, Outside, Value, uses, values_in

_FEW = 4
"""Of more queries the kernel repeats the keys itself."""


def with_shared_heads(items: Sequence[Item], wanted: Iterable[Value]) -> list[Item]:
    """The items, with attention to the heads themselves in place of attention to their copies."""
    if not any(_is_of_few(each) for each in items):
        return list(items)
    made_by = _made_by(items)
    readers = Counter([value.number for item in items for value in uses(item)])
    readers.update([each.number for each in wanted])
    return [
        _sharing(item, at, items, made_by, readers) if isinstance(item, Call) and _is_of_few(item) else item
        for at, item in enumerate(items)
    ]


def steps_left_out(recorded: Sequence[Item], improved: Iterable[Item]) -> frozenset[int]:
    """The positions of the recorded ops that made copies of heads which are shared instead."""
    found: list[int] = []
    made_by = _made_by(recorded)
    for item in improved:
        if isinstance(item, Call) and item.op.name == "attention":
            before: Any = recorded[item.position]
            if _heads(item.examples[1]) != _heads(before.examples[1]):
                found += [at for value in before.args[1:3] for at in _chain(value, recorded, made_by)]
    return frozenset(found)


def is_repeating(name: str, args: Sequence[Any]) -> bool:
    """Whether an op, given an array or a tensor, is a step on the way to each head several times, copy after copy."""
    if name not in _STEPS:
        return False
    shape = getattr(args[0], "_array", args[0]).shape
    if name == "each_repeated":
        return len(shape) == 4 and args[2] == 1
    if name == "unsqueeze":
        return len(shape) == 4 and args[1] == 2
    if len(shape) != 5:
        return False
    batch, heads, times, length, width = shape
    if name == "expand":
        size = tuple(args[1])
        return times == 1 and len(size) == 5 and (*size[:2], *size[3:]) == (batch, heads, length, width)
    return name == "contiguous_clone" or (
        name == "unsafe_view" and tuple(args[1]) == (batch, heads * times, length, width)
    )


def _is_of_few(item: Item) -> bool:
    """Whether an item is attention of a few queries, each of which sees all keys, to as many heads of keys."""
    if type(item) is not Call or item.op.name != "attention":
        return False
    query, key, value, _, is_causal, mask, _ = item.examples
    arrays = [each._array for each in (query, key, value)]
    if is_causal or not all(map(is_on_host, arrays)) or not 0 < arrays[0].shape[2] <= _FEW:
        return False
    return mask is None or (mask._array.shape[-2] == 1 and (mask._array.ndim == 2 or mask._array.shape[1] == 1))


def _sharing(item: Call, position: int, items: Sequence[Item], made_by: dict[int, int], readers: Counter[int]) -> Call:
    """Attention to the heads that were repeated; the same call if somebody else looks at the copies."""
    chains = [_chain(value, items, made_by) for value in item.args[1:3]]
    ends: list[Any] = [items[at] for chain in chains for at in chain]
    if not all(chains) or any(readers[each.number] > 1 for end in ends for each in values_in(end.results)):
        return item
    sources: list[Any] = [items[chain[-1]] for chain in chains]
    found = [each.examples[0]._array for each in sources]
    if found[0].shape != found[1].shape or not all(each.flags.c_contiguous for each in found):
        return item  # rows have to lie in one piece, as those of copies do
    if any(map(_may_change, items[min(chain[-1] for chain in chains) : position])):
        return item
    args = (item.args[0], *[each.args[0] for each in sources], *item.args[3:])
    examples = (item.examples[0], *[each.examples[0] for each in sources], *item.examples[3:])
    return replace(item, args=args, examples=examples)


def _chain(value: Any, items: Sequence[Item], made_by: dict[int, int]) -> list[int]:
    """The positions of the ops that repeat heads, the last one first; nothing: the value has none of these."""
    found: list[int] = []
    while (at := made_by.get(value.number)) is not None:
        call: Any = items[at]
        if not is_repeating(call.op.name, call.examples):
            break
        found.append(at)
        value = call.args[0]
    names = [_name(items[at]) for at in found]
    return found if names in _CHAINS else []


_CHAINS = (["each_repeated"], ["unsafe_view", "contiguous_clone", "expand", "unsqueeze"])
_STEPS = frozenset([name for chain in _CHAINS for name in chain])


def _made_by(items: Sequence[Item]) -> dict[int, int]:
    """Which of the items makes a value, where it is a call that makes but this one."""
    return {
        item.results.number: at
        for at, item in enumerate(items)
        if type(item) is Call and type(item.results) is Value and item.results not in values_in(item.args)
    }


def _name(item: Any) -> str:
    return str(item.op.name)


def _may_change(item: Item) -> bool:
    """Whether an item may write to what was there before it."""
    return isinstance(item, Outside) or (isinstance(item, Call) and bool(item.op.writes))


def _heads(tensor: Any) -> int:
    return int(tensor._array.shape[1])
