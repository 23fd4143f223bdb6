"""Blocks of device memory: cut from segments, kept on shelves when nobody needs them, joined again with neighbours."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from ...._core.process.caller import Place

UNIT = 512
"""All sizes are multiples of it."""
SMALL = 1 << 20
"""Requests up to this size share segments of `SMALL_SEGMENT`, and never those of larger ones."""
SMALL_SEGMENT, LARGE_SEGMENT = 2 << 20, 20 << 20
OWN_SEGMENT = 10 << 20
"""From this size on a request that finds no room has a segment of its own."""

USED, KEPT, FREE = range(3)
"""A tensor has it; it waits for a request of exactly its size; it can be cut and joined."""


def segment_size(size: int) -> int:
    """How much is asked of the device for a block of `size` that finds no room."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < OWN_SEGMENT else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT


class Block:
    """A piece of a segment, with the pieces before and after it there."""

    __slots__ = (
        "after", "before", "place", "pointer", "requested", "returned", "segment", "shelf", "size", "state", "users"
    )  # fmt: skip

    def __init__(self, pointer: int, size: int, shelf: Shelf, returned: deque[Block], segment: int) -> None:
        self.pointer = pointer
        self.size = size
        self.requested = 0
        self.shelf = shelf
        self.returned = returned
        self.segment = segment
        """The address of the segment that it is cut from."""
        self.state = USED
        self.before: Block | None = None
        self.after: Block | None = None
        self.users: set[int] | None = None
        """The queues beside its own that have work with it."""
        self.place: Place | None = None
        """The line that asked for it, while that is written down."""


class PooledMemory:
    """A block in use: it goes back to its pool when nothing refers to it."""

    __slots__ = ("block", "ptr")
    ptr: int
    block: Block

    def __del__(self) -> None:
        # Only noted: this may run anywhere, in the middle of the pool's own work too.
        block = self.block
        block.returned.append(block)


class Shelf:
    """The free blocks of one size class, of one queue: what its work is done with can be used again by its next."""

    __slots__ = ("kept", "ordered", "pool", "small", "stream")

    def __init__(self, pool: int, stream: int, small: bool) -> None:
        self.pool = pool
        self.stream = stream
        self.small = small
        self.kept: dict[int, list[Block]] = {}
        """Blocks as they came back, by size: most requests repeat one of before."""
        self.ordered: list[tuple[int, int, Block]] = []
        """The free blocks, by size and address."""

    def best(self, size: int) -> Block | None:
        """The smallest free block that is large enough, cut to size where the rest is worth it."""
        at = bisect_left(self.ordered, (size,))
        if at == len(self.ordered):
            return None
        block = self.ordered.pop(at)[2]
        return self.cut(block, size)

    def cut(self, block: Block, size: int) -> Block:
        """A block for use; what it does not need becomes a free one."""
        rest = block.size - size
        if rest >= UNIT if self.small else rest > SMALL:
            other = Block(block.pointer + size, rest, self, block.returned, block.segment)
            other.state = FREE
            other.before, other.after = block, block.after
            if other.after is not None:
                other.after.before = other
            block.after = other
            block.size = size
            insort(self.ordered, (rest, other.pointer, other))
        block.state = USED
        return block

    def keep(self, block: Block) -> None:
        """Take back a block as it is."""
        block.state = KEPT
        found = self.kept.get(block.size)
        if found is None:
            self.kept[block.size] = [block]
        else:
            found.append(block)

    def settle(self) -> bool:
        """Join the blocks that came back with their free neighbours; whether there were any."""
        kept, self.kept = self.kept, {}
        for blocks in kept.values():
            for block in blocks:
                self._join(block)
        return bool(kept)

    def _join(self, block: Block) -> None:
        before, after = block.before, block.after
        if before is not None and before.state == FREE:
            self._remove(before)
            before.size += block.size
            before.after = after
            if after is not None:
                after.before = before
            block = before
        if after is not None and after.state == FREE:
            self._remove(after)
            block.size += after.size
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        block.state = FREE
        insort(self.ordered, (block.size, block.pointer, block))

    def _remove(self, block: Block) -> None:
        del self.ordered[bisect_left(self.ordered, (block.size, block.pointer))]

    def whole(self) -> list[Block]:
        """Take out the blocks that are whole segments, and nobody's."""
        self.settle()
        blocks = [block for _, _, block in self.ordered]
        found = [block for block in blocks if block.before is None and block.after is None]
        for block in found:
            self._remove(block)
        return found


def neighbours(first: Block) -> list[Block]:
    """A segment's blocks, from its first one on."""
    found = []
    block: Block | None = first
    while block is not None:
        found.append(block)
        block = block.after
    return found
