"""Running a program at several sizes of its axes: at which, so that what it does tells sizes from other numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

Bounds = tuple[int, int]
"""The smallest and the largest size of an axis."""
ANY: Bounds = (1, sys.maxsize)
_FEW = 4
_MULTIPLE = 48
"""Of most numbers by which sizes are divided: divisions that round otherwise differ there, or at one more."""

Sizes = Mapping[str, int]
T = TypeVar("T")


class Place(NamedTuple):
    """A dimension of an input."""

    leaf: int
    """The number of the tensor among the leaves of the arguments."""
    dim: int
    factor: int = 1
    shift: int = 0
    """The size of the dimension is `factor` times that of the axis, and `shift` more."""


Axes = Mapping[str, Sequence[Place]]
"""The dimensions that an axis gives its size to, by its name."""


def size_at(leaves: Sequence[Any], place: Place) -> int:
    """The size of an axis, from a dimension that it gives its size to."""
    return (int(leaves[place.leaf].shape[place.dim]) - place.shift) // place.factor


def changed_dims(axes: Axes, sizes: Sizes) -> dict[int, dict[int, int]]:
    """The sizes of the dimensions that axes of these sizes give: by the number of the leaf, and by dimension."""
    wanted: dict[int, dict[int, int]] = {}
    for name, places in axes.items():
        for leaf, dim, factor, shift in places:
            wanted.setdefault(leaf, {})[dim] = factor * sizes[name] + shift
    return wanted


class Runs(Generic[T]):
    """The runs of a program by the sizes of its axes, which have those of `base` at first; each is made once.

    `run` raises where the program does not run, and `is_like` tells whether two runs did the same ops.
    """

    def __init__(self, base: Sizes, run: Callable[[Sizes], T], is_like: Callable[[T, T], bool]) -> None:
        self.base, self._run, self._is_like = dict(base), run, is_like
        self._done: dict[tuple[int, ...], T] = {}

    def at(self, sizes: Sizes) -> T:
        """The run with these sizes; axes that are not named keep theirs."""
        whole = {**self.base, **sizes}
        key = tuple(whole.values())
        if key not in self._done:
            self._done[key] = self._run(whole)
        return self._done[key]

    def works(self, sizes: Sizes) -> bool:
        """Whether the program runs with these sizes."""
        try:
            self.at(sizes)
        except Exception:  # whatever a program raises with inputs of a size that it is not made for
            return False
        return True

    def sample(
        self, axes: Sequence[str], bounds: Mapping[str, Bounds] | None = None, together: int = 1, many: bool = False
    ) -> Iterator[Sizes]:
        """The sizes of runs that tell sizes from other numbers: the first ones, others of each axis, others of all.

        Sizes are doubled first, since many programs want multiples; those of all axes `together` are odd ones if the
        program allows that. Where there are `bounds`, sizes stay within them, and two further runs tell functions
        apart, if the program runs with them: one with a least value shows at the smallest sizes, a division that rounds
        at one less than a multiple. `many` adds some that are near the first ones and far from them.
        """
        base = {name: self.base[name] for name in axes}
        others = {name: _other_sizes(size, (bounds or {}).get(name, ANY)) for name, size in base.items()}
        seen = [base, *self._variations(base, others, together)]
        yield from seen
        least = {name: max(low, 2) for name, (low, _) in (bounds or {}).items()}
        odd = {name: max(others[name][0] - 1 if others[name] else 0, size) for name, size in least.items()}
        further = [odd, least]
        if many or (bounds and max(base.values()) <= _FEW):  # a few rows are soon run, and tell little of many
            further.append({name: 4 * size + 3 for name, size in base.items()})
        if many:
            shifts = ((1, 1), (1, -1))
            further += [{name: factor * size + by for name, size in base.items()} for factor, by in shifts]
            further.append({name: size + 1 for name, size in least.items()})
            further += [dict.fromkeys(base, size) for size in (_MULTIPLE, _MULTIPLE + 1)]
        for sizes in (_within(each, bounds or {}) for each in further):
            if sizes and sizes not in seen and self.works(sizes):
                seen.append(sizes)
                yield sizes

    def _variations(self, base: dict[str, int], others: dict[str, list[int]], together: int) -> list[dict[str, int]]:
        """The sizes of the further runs; axes that can only change together do so."""
        moving = [name for name in base if others[name]]
        if not moving:
            return []
        groups: list[list[str]] = []
        bound: list[str] = []
        for name in moving:
            running = (size for size in others[name][:2] if self.works({name: size}))
            first = next(running, None)
            if first is None:
                bound.append(name)
                continue
            groups.append([name])
            same = (size for size in chain([first], running) if self._is_like(self.at(base), self.at({name: size})))
            best = next(same, first)
            others[name] = [best, *[size for size in others[name] if size != best]]
        if bound:
            groups = self._joined(groups, bound, others)
        alone = [base | {name: others[name][0] for name in group} for group in groups]
        count = max(len(others[name]) for name in moving)
        jointly = [
            base | {name: others[name][min(number, len(others[name]) - 1)] for name in moving}
            for number in range(1, max(count, 2))
        ]
        last = list(islice((each for each in jointly if self.works(each)), together)) or jointly[-1:]
        return [*alone, *last]

    def _joined(self, groups: list[list[str]], bound: list[str], others: dict[str, list[int]]) -> list[list[str]]:
        """The groups, and the axes that cannot change alone: together, or with those of their size that can.

        A mask that is indexed may have more rows than the tokens, which may not be more than its rows.
        """
        if not self.works({name: others[name][0] for name in bound}):
            tied = [name for (name,) in groups if any(self.base[name] == self.base[each] for each in bound)]
            if tied and self.works(dict.fromkeys([*bound, *tied], others[bound[0]][0])):
                others |= dict.fromkeys(tied, others[bound[0]])
                return [*(group for group in groups if group[0] not in tied), [*bound, *tied]]
        return [*groups, bound]


def _within(sizes: Sizes, bounds: Mapping[str, Bounds]) -> dict[str, int]:
    """The sizes nearest to these that axes may have."""
    ends = {name: bounds.get(name, ANY) for name in sizes}
    return {name: min(max(size, ends[name][0], 2), ends[name][1]) for name, size in sizes.items()}


def _other_sizes(size: int, bounds: Bounds) -> list[int]:
    """Sizes that an axis takes in further runs, the best one first; none if it may only have the size that it has."""
    low, high = bounds
    wanted = [2 * size, 2 * size + 1, 3 * size]
    if high < wanted[-1]:
        wanted += [(size + high) // 2, size // 2, size - 1, low]
    within = [each for each in dict.fromkeys(wanted) if max(low, 2) <= each < high and each != size]
    return within if high in (size, sys.maxsize) else [*within, high]  # at the end of a table a slice is all of it
