"""Blocks of device memory: cut from segments, kept on shelves when nobody needs them, joined again with neighbours."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, insort
from heapq import heappush
from typing import Any

from ...._core.process.caller import Place
from .settings import Settings
from .statistics import SMALL, Journal

UNIT = 512
"""All sizes are multiples of it."""
SMALL_SEGMENT, LARGE_SEGMENT = 2 << 20, 20 << 20
OWN_SEGMENT = 10 << 20
"""From this size on a request that finds no room has a segment of its own."""

_MUCH, _PATIENCE = 0.5, 64
"""What part of the memory has to be kept, or how many requests have to find nothing, before it is joined."""

USED, KEPT, FREE, WAITING, UNMAPPED = range(5)
"""A tensor has it; it is for a request like the last one; it can be cut and joined; other queues still use it; its
addresses have no memory (`ranges.py`)."""


def segment_size(size: int) -> int:
    """How much is asked of the device for a block of `size` that finds no room."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < OWN_SEGMENT else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT


class Block:
    """A piece of a segment, with the pieces before and after it there."""

    __slots__ = ("after", "before", "home", "note", "pointer", "requested", "shelf", "size", "stack", "state", "users")

    def __init__(self, pointer: int, size: int, shelf: Shelf) -> None:
        self.pointer = pointer
        self.size = size
        self.requested = 0
        self.shelf = shelf
        self.note: Any = shelf.note
        self.home: Heap = []
        """Where its shelf keeps the blocks for requests like the one that it was cut for."""
        self.state = FREE
        self.before: Block | None = None
        self.after: Block | None = None
        self.users: set[tuple[int, int]] | None = None
        """The queues beside its own that have work with it, each with its device."""
        self.stack: tuple[Place, ...] = ()
        """The lines that asked for it, while that is written down."""


Heap = list[tuple[int, Block]]
"""Blocks with their addresses, by which they are ordered."""


class PooledMemory:
    """A block in use: it goes back to its shelf when nothing refers to it."""

    __slots__ = ("block", "ptr")
    ptr: int
    block: Block

    @property
    def ordinal(self) -> int:
        """The device that it is on."""
        return self.block.shelf.ordinal

    def __del__(self, push: Any = heappush) -> None:
        # This may run anywhere, in the middle of the pool's own work too: each step is whole in itself. It may run when
        # the process ends and this module's names are gone, too.
        block = self.block
        block.note((-block.size, -block.requested))
        if block.users is None:
            block.state = KEPT
            push(block.home, (block.pointer, block))
        else:
            block.state = WAITING
            block.shelf.waiting.append(block)


class Shelf:
    """The free blocks of one size class, of one queue: what its work is done with can be used again by its next."""

    __slots__ = (
        "kept", "misses", "note", "ordered", "ordinal", "pool", "reserved", "settings", "small", "splits", "stream",
        "waiting",
    )  # fmt: skip

    def __init__(
        self, pool: int, stream: int, small: bool, journal: Journal, waiting: list[Block], ordinal: int,
        settings: Settings, splits: bool = True,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.splits = splits
        """Whether blocks are cut."""
        self.ordinal = ordinal
        """The device of the pool."""
        self.pool = pool
        self.stream = stream
        self.small = small
        self.note = journal.extend
        self.waiting = waiting
        """Where blocks go that other queues use too."""
        self.kept: dict[int, Heap] = {}
        """Blocks as they came back, by the size that was asked for: most requests repeat one of before. The lowest one
        is taken first, so that equal steps of a program get equal addresses. A heap stays the same one for ever.
        """
        self.ordered: list[tuple[int, int, Block]] = []
        """The free blocks, by size and address."""
        self.reserved = 0
        """The bytes of its segments."""
        self.misses = _PATIENCE
        """How many requests found no block since all were joined."""

    def may_settle(self) -> bool:
        """Whether a request that finds no block is a reason to join all, and to cut them anew when they are asked for.

        Where a program needs most of its memory for what it did before, one more segment is better, now and then: else
        every step of a loop would cut all blocks anew.
        """
        self.misses += 1
        if self.misses > _PATIENCE:
            return True
        kept = sum([block.size for blocks in tuple(self.kept.values()) for _, block in tuple(blocks)])
        return kept >= self.reserved * _MUCH

    def best(self, size: int) -> Block | None:
        """The smallest free block that is large enough, cut to size where the rest is worth it."""
        at = bisect_left(self.ordered, (size,))
        if at == len(self.ordered):
            return None
        if not self.small and not self.settings.fits(self.ordered[at][0], size):
            return None
        block = self.ordered.pop(at)[2]
        return self.cut(block, size)

    def cut(self, block: Block, size: int) -> Block:
        """A block for use; what it does not need becomes a free one."""
        rest = block.size - size
        if self.splits and (rest >= UNIT if self.small else rest > SMALL and self.settings.may_cut(size)):
            other = Block(block.pointer + size, rest, self)
            other.before, other.after = block, block.after
            if other.after is not None:
                other.after.before = other
            block.after = other
            block.size = size
            insort(self.ordered, (rest, other.pointer, other))
        block.home = self.kept.setdefault(size, [])
        return block

    def settle(self) -> bool:
        """Join the blocks that came back with their free neighbours; whether there were any."""
        found = False
        for blocks in tuple(self.kept.values()):
            with contextlib.suppress(IndexError):  # other threads take from the list too
                while True:
                    self.join(blocks.pop()[1])
                    found = True
        if found:
            self.misses = 0
        return found

    def join(self, block: Block) -> Block:
        """Let a block be free, as one with its free neighbours."""
        before, after = block.before, block.after
        if before is not None and before.state == FREE:
            self.remove(before)
            before.size += block.size
            before.after = after
            if after is not None:
                after.before = before
            block = before
        if after is not None and after.state == FREE:
            self.remove(after)
            block.size += after.size
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        block.state = FREE
        insort(self.ordered, (block.size, block.pointer, block))
        return block

    def remove(self, block: Block) -> None:
        """Take a free block out."""
        del self.ordered[bisect_left(self.ordered, (block.size, block.pointer))]

    def put_back(self, block: Block) -> None:
        """Keep a free block that `whole` or `remove` took out."""
        insort(self.ordered, (block.size, block.pointer, block))

    def whole(self) -> list[Block]:
        """Take out the blocks that are whole segments, and nobody's."""
        self.settle()
        self.misses = _PATIENCE
        blocks = [block for _, _, block in self.ordered]
        found = [block for block in blocks if block.before is None and block.after is None]
        for block in found:
            self.remove(block)
        return found


def neighbours(first: Block) -> list[Block]:
    """A segment's blocks, from its first one on."""
    found = []
    block: Block | None = first
    while block is not None:
        found.append(block)
        block = block.after
    return found
