"""Memory over the time of a profile: how much there was of what, and which tensors made up the most there was."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._dispatch.public.overloads import profiled_name
from ._events import stack_of
from ._memory import Block
from ._recorder import BACKWARD, FORWARD, STEP, Details, Recorder

CATEGORIES = (
    "PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "UNKNOWN",
)  # fmt: skip
"""PyTorch's kinds of memory, in the order of its files. The last two have no use here."""


class Piece(NamedTuple):
    """A block with what it was for."""

    block: Block
    start: int
    end: int | None
    category: str
    made_by: str
    stack: list[str]


class MemoryTimeline:
    """The blocks of a profile, sorted by what they were for."""

    def __init__(self, recorder: Recorder) -> None:
        if recorder.memory is None:
            raise ValueError("the profile has no memory in it: use profile_memory=True")
        self._recorder = recorder
        self._passes = _parts_of_a_step(recorder)
        self.pieces = []
        for number, block in enumerate(recorder.memory.blocks):
            end = recorder.memory.freed.get(number)
            made_by, stack = "", []
            if block.start:
                op, _, _, *details = recorder.notes[block.note]
                made_by, stack = profiled_name(op), stack_of(Details(*details).frames)
            category = self._category(block, end)
            self.pieces.append(Piece(block, block.start or recorder.started, end, category, made_by, stack))

    def _category(self, block: Block, end: int | None) -> str:
        """What a block was for, by where it was made and how long it was kept."""
        phase, part_end, next_backward = self._passes[block.note]
        if not block.start:
            return "PARAMETER" if block.is_parameter else "OPTIMIZER_STATE" if phase == STEP else "INPUT"
        if phase == FORWARD:
            kept = next_backward is not None and (end is None or end >= next_backward)
            return "ACTIVATION" if kept else "TEMPORARY"
        if end is not None and end <= part_end:
            return "TEMPORARY"
        return "GRADIENT" if phase == BACKWARD else "OPTIMIZER_STATE"

    def series(self) -> tuple[list[int], list[list[int]]]:
        """Times in microseconds, and for each the bytes by category, after a zero: what PyTorch's files hold."""
        changes = []
        for piece in self.pieces:
            column = CATEGORIES.index(piece.category) + 1
            changes.append((piece.start, column, piece.block.nbytes))
            if piece.end is not None:
                changes.append((piece.end, column, -piece.block.nbytes))
        times: list[int] = []
        sizes: list[list[int]] = []
        for time, column, nbytes in sorted(changes):
            if not times or times[-1] != time // 1000:
                times.append(time // 1000)
                sizes.append(list(sizes[-1]) if sizes else [0] * (len(CATEGORIES) + 1))
            sizes[-1][column] += nbytes
        return times, sizes

    def peak(self) -> tuple[int, int, list[Piece]]:
        """When there was most (in nanoseconds), how much, and of which blocks, the largest first."""
        changes = [(piece.start, piece.block.nbytes) for piece in self.pieces]
        changes += [(piece.end, -piece.block.nbytes) for piece in self.pieces if piece.end is not None]
        most, total, moment = 0, 0, self._recorder.started
        for time, nbytes in sorted(changes):
            total += nbytes
            if total > most:
                most, moment = total, time
        there = [each for each in self.pieces if each.start <= moment and (each.end is None or each.end > moment)]
        return moment, most, sorted(there, key=lambda each: -each.block.nbytes)

    def raw(self) -> list[list[Any]]:
        """Every change: time in microseconds, what happened, bytes, category."""
        changes = [
            [each.start // 1000, "CREATE" if each.block.start else "PREEXISTING", each.block.nbytes, each.category]
            for each in self.pieces
        ]
        changes += [
            [each.end // 1000, "DESTROY", each.block.nbytes, each.category]
            for each in self.pieces
            if each.end is not None
        ]
        return sorted(changes, key=lambda each: each[0])


def _parts_of_a_step(recorder: Recorder) -> list[tuple[int, int, int | None]]:
    """For each note the phase that it belongs to, when that ends, and when the next backward pass begins."""
    found: list[tuple[int, int, int | None]] = []
    phase, end, next_backward = STEP, 0, None
    for what, start, stop, *details in reversed(recorder.notes):
        own = Details(*details).phase
        if not isinstance(what, str):
            if own != phase:
                phase, end = own, stop
            if own == BACKWARD:
                next_backward = start
        found.append((own, end, next_backward))
    return found[::-1]
