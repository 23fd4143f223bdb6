"""Timings side by side."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable
from typing import Any

from ._measurement import Measurement, select_unit


class Colorize(enum.Enum):
    """Whether rows or columns of a table are marked by how quick they are."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they come."""
    return list(dict.fromkeys(elements))


class Compare:
    """A table of measurements: a row for each label, a column for each description, a part for each thread count."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Take further measurements in."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Show fewer figures: the table shows four at most."""

    def colorize(self, rowwise: bool = False) -> None:
        """Mark the quickest: the table has no colours."""

    def highlight_warnings(self) -> None:
        """Mark what varies much: the table has no marks."""

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        if not results:
            return ""
        unit, scale = select_unit(min(each.median for each in results))
        tables = []
        for label in ordered_unique(each.task_spec.label for each in results):
            part = [each for each in results if each.task_spec.label == label]
            columns = ordered_unique(each.task_spec.description or "" for each in part)
            lines = [[f"{label or ''} ({unit})", *columns]]
            for threads in ordered_unique(each.task_spec.num_threads for each in part):
                lines.append([f"{threads} threads:"])
                for row in ordered_unique(each.as_row_name for each in part):
                    found = {
                        each.task_spec.description or "": f"{each.median / scale:.4g}"
                        for each in part
                        if each.as_row_name == row and each.task_spec.num_threads == threads
                    }
                    lines.append([f"  {row}", *(found.get(column, "") for column in columns)])
            widths = [
                max(len(line[number]) for line in lines if len(line) > number) for number in range(len(columns) + 1)
            ]
            tables.append("\n".join(" | ".join(f"{cell:>{widths[number]}}" if number else f"{cell:<{widths[0]}}"
                                               for number, cell in enumerate(line)) for line in lines))  # fmt: skip
        return "\n\n".join(tables)

    def print(self) -> None:
        """Print the table."""
        sys.stdout.write(f"{self}\n")
