"""Results that nobody asks for: where an op gives more than is used, another one gives just that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..._dispatch.op import OPS
from ..program.items import Call, Item, Value, uses


def without_extra(items: Sequence[Item], wanted: Sequence[Value]) -> list[Item]:
    """The items, with the places of maxima left out where nobody goes back to them."""
    used = {each.number for each in wanted} | {each.number for item in items for each in uses(item)}
    return [_maxima_alone(each) if _has_unused_places(each, used) else each for each in items]


def _has_unused_places(item: Item, used: set[int]) -> bool:
    if type(item) is not Call or item.op.name != "max_pool2d_with_indices":
        return False
    return item.results[1].number not in used


def _maxima_alone(item: Item) -> Item:
    assert isinstance(item, Call)
    image, kernel, stride, *rest = item.args
    args = image, kernel, stride or kernel, *rest
    examples = item.examples[0], *args[1:]
    return replace(item, op=OPS["max_pool"], args=args, examples=examples, results=item.results[0], made=item.made[0])
