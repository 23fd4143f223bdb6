"""What a pool of memory counts, under PyTorch's names: what there is, the most there was, all that came and went."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

SMALL = 1 << 20
"""Requests up to this size share small segments, and never those of larger ones: they are counted apart."""
LONGEST = 1 << 16
"""So many changes are written down before they are added up."""


Journal = list[int]
"""What every request changes, only written down, and added up when somebody asks: the size of the block and the bytes
that were asked for as it is handed out, and both negative as it comes back. Plain numbers: the collector of cycles has
no business with them.
"""


def _taken(journal: Journal) -> Any:
    """What is written down so far, taken out; others may write meanwhile."""
    found = journal[:]
    del journal[: len(found)]
    numbers = np.fromiter(found, np.int64, len(found)).reshape(-1, 2)  # both numbers of a step are written at once
    return np.ascontiguousarray(numbers.T)


class Course(NamedTuple):
    """What many steps of a number come to."""

    highest: int
    """Above where it begins, if it goes up at all."""
    up: int
    down: int

    @classmethod
    def of(cls, steps: Any) -> Course:
        """The course of a count that changes by these steps, in order."""
        if not steps.size:
            return cls(0, 0, 0)
        course = steps.cumsum()
        total, covered = int(course[-1]), int(np.abs(steps).sum())
        return cls(int(course.max()), (covered + total) // 2, (covered - total) // 2)


class Gauge:
    """A number that goes up and down: where it is, its highest, and the sums of its steps up and down."""

    __slots__ = ("current", "down", "peak", "up")

    def __init__(self) -> None:
        self.current = self.peak = self.up = self.down = 0

    def add(self, amount: int) -> None:
        """One step."""
        self.current += amount
        if amount > 0:
            self.up += amount
            self.peak = max(self.peak, self.current)
        else:
            self.down -= amount

    def follow(self, course: Course) -> None:
        """Many steps."""
        self.peak = max(self.peak, self.current + course.highest)
        self.up += course.up
        self.down += course.down
        self.current += course.up - course.down

    def values(self) -> dict[str, int]:
        """By PyTorch's names."""
        return {"allocated": self.up, "current": self.current, "freed": self.down, "peak": self.peak}


_SIDES = ("all", "large_pool", "small_pool")
_KINDS = (
    "active", "active_bytes", "allocated_bytes", "allocation", "inactive_split", "inactive_split_bytes",
    "requested_bytes", "reserved_bytes", "segment",
)  # fmt: skip


class Statistics:
    """All gauges of a pool."""

    def __init__(self) -> None:
        self.gauges = {f"{kind}.{side}": Gauge() for kind in _KINDS for side in _SIDES}
        self.journal: Journal = []
        self.failures = self.retries = self.device_calls = self.device_returns = 0

    def _both(self, kind: str, small: bool, amount: int) -> None:
        self.gauges[f"{kind}.all"].add(amount)
        self.gauges[f"{kind}.{'small' if small else 'large'}_pool"].add(amount)

    def segment(self, size: int, small: bool, sign: int) -> None:
        """A segment came from the device (1) or went back (-1)."""
        self._both("segment", small, sign)
        self._both("reserved_bytes", small, sign * size)
        if sign > 0:
            self.device_calls += 1
        else:
            self.device_returns += 1

    def mapped(self, size: int, small: bool) -> None:
        """Memory came to a segment that grows or, with a negative size, went from it."""
        self._both("reserved_bytes", small, size)

    def waiting(self, size: int, small: bool, sign: int) -> None:
        """A block that nobody needs waits for other queues' work (1), or does not any more (-1)."""
        self._both("active", small, sign)
        self._both("active_bytes", small, sign * size)

    def splits(self, sizes: dict[bool, list[int]]) -> None:
        """The free pieces of segments that are partly in use, small ones and large ones."""
        for small, found in sizes.items():
            side = "small_pool" if small else "large_pool"
            for kind, now in (("inactive_split", len(found)), ("inactive_split_bytes", sum(found))):
                self._both(kind, small, now - self.gauges[f"{kind}.{side}"].current)

    def add_up(self) -> None:
        """Bring the gauges up to date."""
        found = _taken(self.journal)
        small = np.abs(found[0]) <= SMALL
        for side, steps in (("all", found), ("small_pool", found[:, small]), ("large_pool", found[:, ~small])):
            sizes, requests = steps
            for names, course in (
                (("allocation", "active"), Course.of(np.sign(sizes))),
                (("allocated_bytes", "active_bytes"), Course.of(sizes)),
                (("requested_bytes",), Course.of(requests)),
            ):
                for name in names:
                    self.gauges[f"{name}.{side}"].follow(course)

    def reset_peaks(self) -> None:
        """Let the highest values begin again from the present ones."""
        self.add_up()
        for each in self.gauges.values():
            each.peak = each.current

    def reset_sums(self) -> None:
        """Let the sums begin again."""
        self.add_up()
        for each in self.gauges.values():
            each.up = each.down = 0
        self.failures = self.retries = self.device_calls = self.device_returns = 0

    def table(self) -> OrderedDict[str, int]:
        """Everything, by PyTorch's names, in their order."""
        self.add_up()
        found = {f"{name}.{key}": value for name, gauge in self.gauges.items() for key, value in gauge.values().items()}
        # no block is so large here that it may not be cut
        found |= {f"oversize_{name}.{key}": 0 for name in ("allocations", "segments") for key in Gauge().values()}
        found |= {
            "max_split_size": -1,
            "num_alloc_retries": self.retries,
            "num_device_alloc": self.device_calls,
            "num_device_free": self.device_returns,
            "num_ooms": self.failures,
            "num_sync_all_streams": 0,
        }
        return OrderedDict(sorted(found.items()))


def nested(table: dict[str, Any]) -> dict[str, Any]:
    """A table with names such as 'a.b.c' as dictionaries in dictionaries."""
    result: dict[str, Any] = {}
    for name, value in table.items():
        *path, last = name.split(".")
        place = result
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return result
