"""Which entries of two traces belong together: the shortest list of insertions and deletions between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

MOST_EDITS = 3000
"""Beyond that two runs have little in common, and entries are paired by how often they have occurred."""

Pairs = list[tuple[int, int]]


def aligned(one: Sequence[Hashable], other: Sequence[Hashable]) -> Pairs:
    """Positions of equal items in both sequences, in order, as many as possible."""
    start = 0
    least = min(len(one), len(other))
    while start < least and one[start] == other[start]:
        start += 1
    end = 0
    while end < least - start and one[-1 - end] == other[-1 - end]:
        end += 1
    head = [(position, position) for position in range(start)]
    tail = [(len(one) - each, len(other) - each) for each in range(end, 0, -1)]
    middle = _shortest_edit(one[start : len(one) - end], other[start : len(other) - end])
    return [*head, *((start + i, start + j) for i, j in middle), *tail]


def _shortest_edit(one: Sequence[Hashable], other: Sequence[Hashable]) -> Pairs:
    """Myers' greedy algorithm: for each number of edits the furthest point on every diagonal."""
    if not one or not other:
        return []
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(len(one) + len(other), MOST_EDITS) + 1):
        history.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(one) and y < len(other) and one[x] == other[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(one) and y >= len(other):
                return _walked_back(history, len(one), len(other))
    return _by_occurrence(one, other)


def _walked_back(history: list[dict[int, int]], x: int, y: int) -> Pairs:
    found: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        furthest, diagonal = history[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = furthest[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = from_x, from_y
    return found[::-1]


def _by_occurrence(one: Sequence[Hashable], other: Sequence[Hashable]) -> Pairs:
    places: dict[Hashable, list[int]] = {}
    for position, each in enumerate(other):
        places.setdefault(each, []).append(position)
    found: Pairs = []
    last = -1
    for position, each in enumerate(one):
        rest = places.get(each, [])
        while rest and rest[0] <= last:
            rest.pop(0)
        if rest:
            last = rest.pop(0)
            found.append((position, last))
    return found
