"""Windows on parameters that a graph has saved, such as the transpose that a product saves.

They are found when the parameters give up their memory, so that they do so too, and get it back with the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.node import Node, OpNode, SavedTensor
from ..._core.storage import address_of, owner_of


@dataclass
class Window:
    """What a graph has saved of a parameter."""

    saved: SavedTensor
    number: int
    """The number of the parameter."""
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def look_at(self, memory: Any, start: int, strides: tuple[int, ...]) -> None:
        """Have other memory, unless the graph needs none any more. Start and strides count bytes."""
        if self.saved.tensor is not None:
            _, kind, counter = self.saved.tensor
            array = kind.backend.window(memory, self.shape, kind.dtype.numpy, start, strides)
            self.saved.tensor = array, kind, counter


def saved_windows(last: Sequence[Node], since: int, owners: Mapping[int, int]) -> Iterator[Window]:
    """The windows that a graph has saved from a sequence number on, up to the last nodes.

    `owners` has the numbers of parameters by the ids of their arrays.
    """
    seen, waiting = set(last), list(last)
    while waiting:
        node = waiting.pop()
        for saved in _saved_by(node):
            if type(saved) is SavedTensor and type(saved.tensor) is tuple:
                array = saved.tensor[0]
                owner = owner_of(array)
                if owner is not array and (number := owners.get(id(owner))) is not None:
                    start = address_of(array) - address_of(owner)
                    yield Window(saved, number, start, array.shape, array.strides)
        for edge in node.edges:
            if edge is not None and isinstance(edge[0], Node) and edge[0].sequence >= since and edge[0] not in seen:
                seen.add(edge[0])
                waiting.append(edge[0])


def _saved_by(node: Node) -> Iterator[Any]:
    if not isinstance(node, OpNode):
        yield from getattr(node, "_saved", None) or ()
        return
    for name in node.held_names:
        value = getattr(node, name)
        if type(value) is list:
            yield from value
        else:
            yield value
