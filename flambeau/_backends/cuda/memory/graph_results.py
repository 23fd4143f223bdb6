"""Memory of a captured graph that belongs to its results as long as somebody has them."""

from __future__ import annotations

from typing import Any


class ResultMemory:
    """The memory of a result of one replay: as long as somebody has it, no other replay may write there."""

    __slots__ = ("__weakref__", "_for_ever", "_memory", "ptr")

    def __init__(self, memory: Any, for_ever: list[Any]) -> None:
        self.ptr: int = memory.ptr
        self._memory = memory
        self._for_ever = for_ever

    @property
    def ordinal(self) -> int:
        """The device that it is on."""
        found: int = self._memory.ordinal
        return found

    def stays(self) -> None:
        """Another queue works with it, nobody knows how long: let no replay have it."""
        self._for_ever.append(self)
