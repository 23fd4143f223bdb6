"""What a program can do without, to the bit: each file has one kind of change to its list of items.

- `in_place.py`: an op that changes an array of the program's own is one that makes a new array.
- `slices.py`: an op that writes into a copy, which is copied back, writes into the array itself.
- `copies.py`: copies that nobody could tell from what they are copies of.
- `repeats.py`: ops that are given the same twice.
- `heads.py`: heads of keys that are copied for the queries which share them.
- `joins.py`: large arrays that are joined, and then put in another order.
- `extra.py`: results of an op that nobody uses.
- `dead.py`: ops whose results nobody uses.

All of them ask `memory.py` which values lie in the same memory, and who looks at it or changes it later on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program.items import Item, Value
from .copies import without_copies
from .dead import without_dead
from .extra import without_extra
from .heads import with_shared_heads
from .in_place import without_changes
from .joins import with_joins_in_order
from .repeats import without_repeats
from .slices import with_slices_in_place


def improved(items: Sequence[Item], wanted: Sequence[Value], for_all_sizes: bool = False) -> list[Item]:
    """The items of a program that is to give the values `wanted`, with less to do.

    `for_all_sizes`: passes that depend on the sizes of the recorded call are left out.
    """
    for change in (without_changes, without_copies, without_repeats):
        items = change(items, wanted)
    items = without_dead(with_shared_heads(items, wanted), wanted)
    items = with_slices_in_place(without_extra(items, wanted), wanted)
    return items if for_all_sizes else with_joins_in_order(items, wanted)
