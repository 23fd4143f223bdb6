"""Segments that grow (`expandable_segments`): addresses are reserved once, and get memory piece by piece.

A shelf then has one segment for all its blocks. Where it needs more, memory is mapped behind what is there, so that a
free block at the end grows in place of lying idle beside a new segment. Free pieces in the middle lose their memory
when it is given back, and may get other memory later.
"""

from __future__ import annotations

from typing import Protocol

from .block import FREE, LARGE_SEGMENT, SMALL_SEGMENT, UNMAPPED, Block, Shelf, neighbours


class Space(Protocol):
    """Addresses of a device, as ranges need them."""

    def is_supported(self) -> bool:
        """Whether the device can do this."""

    def reserve(self, nbytes: int) -> int:
        """Addresses that nobody else gets; there is no memory behind them."""

    def release(self, pointer: int, nbytes: int) -> None:
        """Let others have addresses behind which there is no memory."""

    def map(self, pointer: int, nbytes: int, piece: int) -> bool:
        """Put memory behind addresses, in pieces; False: the device has not so much."""

    def unmap(self, pointer: int, nbytes: int, piece: int) -> None:
        """Take the memory back from behind addresses, when all work is done."""


class Range:
    """The addresses of a shelf. Blocks without memory (`UNMAPPED`) stand between the others."""

    __slots__ = ("base", "first", "piece", "shelf", "size")

    def __init__(self, base: int, size: int, shelf: Shelf) -> None:
        self.base = base
        self.size = size
        self.shelf = shelf
        self.piece = SMALL_SEGMENT if shelf.small else LARGE_SEGMENT
        """Memory comes and goes in pieces of so many bytes."""
        self.first = Block(base, size, shelf)
        self.first.state = UNMAPPED

    def hole_for(self, size: int) -> tuple[Block, int] | None:
        """The first block without memory that a block can be made of, with its free neighbours, and how much of it is
        needed."""
        for hole in neighbours(self.first):
            if hole.state == UNMAPPED:
                before, after = (
                    each.size if each is not None and each.state == FREE else 0 for each in (hole.before, hole.after)
                )
                wanted = max(-(-(size - before) // self.piece), 1) * self.piece
                if wanted <= hole.size:
                    return hole, wanted
                if before + hole.size + after >= size:
                    return hole, hole.size
        return None

    def mapped(self, hole: Block, nbytes: int) -> Block:
        """The free block that the front of a hole, which has memory now, becomes with its neighbours."""
        if nbytes < hole.size:
            rest = self._split(hole, nbytes)
            rest.state = UNMAPPED
        return self.shelf.join(hole)

    def unmapped(self, block: Block) -> tuple[int, int] | None:
        """Let the whole pieces in a free block be a hole: its address and size; None: there are none."""
        offset = block.pointer - self.base
        begin = -(-offset // self.piece) * self.piece
        end = (offset + block.size) // self.piece * self.piece
        if begin >= end:
            return None
        self.shelf.remove(block)
        hole = block
        if begin > offset:
            hole = self._split(block, begin - offset)
            self.shelf.put_back(block)
        if hole.size > end - begin:
            rest = self._split(hole, end - begin)
            rest.state = FREE
            self.shelf.put_back(rest)
        hole.state = UNMAPPED
        found = hole.pointer, hole.size
        self._swallow(hole)
        if hole.before is not None and hole.before.state == UNMAPPED:
            self._swallow(hole.before)
        return found

    def is_empty(self) -> bool:
        """Whether no memory is left."""
        return self.first.state == UNMAPPED and self.first.after is None

    def runs(self) -> list[list[Block]]:
        """The blocks with memory, those without gaps together."""
        found: list[list[Block]] = [[]]
        for block in neighbours(self.first):
            if block.state != UNMAPPED:
                found[-1].append(block)
            elif found[-1]:
                found.append([])
        return [each for each in found if each]

    @staticmethod
    def _swallow(hole: Block) -> None:
        """Let a hole have the one behind it, if there is one."""
        other = hole.after
        if other is not None and other.state == UNMAPPED:
            hole.size += other.size
            hole.after = other.after
            if hole.after is not None:
                hole.after.before = hole

    def _split(self, block: Block, size: int) -> Block:
        """Cut a block behind so many bytes, and give the second part."""
        other = Block(block.pointer + size, block.size - size, self.shelf)
        other.before, other.after = block, block.after
        if other.after is not None:
            other.after.before = other
        block.after = other
        block.size = size
        return other
