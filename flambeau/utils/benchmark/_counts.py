"""Counts of instructions by function, as a profiler of instructions gives them: sums, differences, filters."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ..._core.names.same_as import same_as
from ._measurement import TaskSpec

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]

_SHOWN = 18
_NOISE = ("dictobject.c:lookdict_unicode", "dictobject.c:lookdict", "dictobject.c:insertdict", "???")
"""Functions of Python's dictionaries, whose work depends on the addresses of objects."""


FunctionCount: Any = collections.namedtuple(
    "FunctionCount", ["count", "function"]
)  # as a class it would hide `tuple.count`


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Counts of many functions, the largest first."""

    _data: tuple[Any, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Any:
        found = self._data[item]
        return dataclasses.replace(self, _data=found) if isinstance(item, slice) else found

    def __repr__(self) -> str:
        shown = list(self._data)
        if self.truncate_rows and len(shown) > _SHOWN:
            half = _SHOWN // 2
            shown = [*shown[:half], FunctionCount(0, "..."), *shown[-half:]]
        width = max((len(f"{each.count:,}") for each in shown), default=0)
        lines = [
            f"{'...':>{width}}" if each.function == "..." else f"{each.count:>{width},}  {each.function}"
            for each in shown
        ]
        return "\n".join([f"<{type(self).__name__} of {len(self)} functions>", *lines, f"Total: {self.sum():,}"])

    def _merged(self, others: FunctionCounts, sign: int) -> FunctionCounts:
        if self.inclusive != others.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        totals: dict[str, int] = defaultdict(int)
        for each in self:
            totals[each.function] += each.count
        for each in others:
            totals[each.function] += sign * each.count
        return self._from(totals)

    def _from(self, totals: dict[str, int]) -> FunctionCounts:
        data = [FunctionCount(count, function) for function, count in totals.items() if count]
        return dataclasses.replace(self, _data=tuple(sorted(data, reverse=True)))

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merged(other, 1)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merged(other, -1)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._from({each.function: int(each.count * other) for each in self})

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """The counts under other names; those of equal names add up."""
        totals: dict[str, int] = defaultdict(int)
        for each in self:
            totals[map_fn(each.function)] += each.count
        return self._from(totals)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """The counts of the functions whose names pass."""
        return dataclasses.replace(self, _data=tuple(each for each in self if filter_fn(each.function)))

    def sum(self) -> int:
        """The number of all instructions together."""
        return sum(each.count for each in self)

    def denoise(self) -> FunctionCounts:
        """Without what varies from run to run: how Python finds its names."""
        return self.filter(lambda name: not any(each in name for each in _NOISE))


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """What a statement ran, and what an empty one ran around it."""

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """The counts of the statement; inclusive ones count what a function calls."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions of the statement."""
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """What this statement ran more than another."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """Counts with file names from the package or the library on, so that two installations compare."""

        def short(name: str) -> str:
            for mark in ("site-packages/", "build/", "Python-"):
                _, found, rest = name.partition(mark)
                if found:
                    return rest
            return name

        changed = {
            name: getattr(self, name).transform(short)
            for name in (
                "baseline_inclusive_stats", "baseline_exclusive_stats", "stmt_inclusive_stats", "stmt_exclusive_stats"
            )
        }  # fmt: skip
        return dataclasses.replace(self, **changed)


class Serialization(enum.Enum):
    """How a value reaches the process in which instructions are counted."""

    PICKLE = 0
    TORCH = 1
    TORCH_JIT = 2


class CopyIfCallgrind:
    """Says that a global of a statement may be replaced by a copy, in another process."""

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        from ...jit import ScriptFunction, ScriptModule
        from ...nn import Module

        kind = type(value)
        if isinstance(value, (str, bytes, bool, int, float, complex)):
            self._serialization = Serialization.PICKLE
        elif isinstance(value, (ScriptFunction, ScriptModule)):
            self._serialization = Serialization.TORCH_JIT
        elif isinstance(value, Module):
            self._serialization = Serialization.TORCH
        else:
            raise ValueError(f"Unsupported type: {kind}\nand the base classes: {kind.__bases__}")
        self._value, self._setup = value, setup

    value: Any = same_as("_value", "The value.")
    setup: str | None = same_as("_setup", "Code that runs before the value is made.")
    serialization: Serialization = same_as("_serialization", "How it travels.")

    @staticmethod
    def unwrap_all(globals: dict[str, Any]) -> dict[str, Any]:
        """Globals with the values in the place of such marks."""
        return {name: each.value if isinstance(each, CopyIfCallgrind) else each for name, each in globals.items()}
