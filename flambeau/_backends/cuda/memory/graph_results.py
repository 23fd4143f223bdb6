"""Memory of a graph's own that is lent to the holders of its results."""

from __future__ import annotations

from typing import Any


class Lent:
    """The memory of a result of one replay: as long as somebody has it, no other replay may write there."""

    __slots__ = ("__weakref__", "_for_ever", "_memory", "ptr")

    def __init__(self, memory: Any, for_ever: list[Any]) -> None:
        self.ptr: int = memory.ptr
        self._memory = memory
        self._for_ever = for_ever

    def stays(self) -> None:
        """Another queue works with it, nobody knows how long: let no replay have it."""
        self._for_ever.append(self)
