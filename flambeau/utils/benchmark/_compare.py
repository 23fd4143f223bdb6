"""Timings side by side."""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Iterable
from typing import Any

from ._measurement import Measurement, select_unit, trim_sigfig, unit_to_english

_MARKS = ((1.01, "\033[92m\033[1m"), (1.1, "\033[34m\033[1m"), (2.0, ""), (5.0, "\033[2m\033[91m"))
"""Below so many times the best a cell has this colour; what takes longer has the last one."""
_SLOWEST = "\033[31m\033[1m"
_END = "\033[0m\033[0m"
_EXPLAINED = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."


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
        self._trims = self._warns = False
        self._colours = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Take further measurements in."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Show only the figures that mean something."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour cells by how quick they are beside the best of their column, or of their row."""
        self._colours = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark what varies much."""
        self._warns = True

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        tables = []
        for title in ordered_unique(map(_title, results)):
            group = [each for each in results if _title(each) == title]
            tables.append(_Table(group, self._trims, self._warns, self._colours).text(title))
        return "\n".join(tables)

    def print(self) -> None:
        """Print the table of the measurements."""
        sys.stdout.write(f"{self}\n")


class _Table:
    """The measurements of one label."""

    def __init__(self, results: list[Measurement], trims: bool, warns: bool, colours: Colorize) -> None:
        self.results, self.colours = results, colours
        self.unit, self.scale = select_unit(min(each.median for each in results))
        self.has_warnings = warns and any(each.has_warnings for each in results)
        self.columns = ordered_unique(map(_column, results))
        environments = [each.task_spec.env for each in results if each.task_spec.env is not None]
        self.environment_width = max((len(each) + 2 for each in environments), default=2)
        self.texts: dict[int, str] = {}
        """What stands in the cell of each measurement, by its id."""
        for column in self.columns:
            self._write_column([each for each in results if _column(each) == column], trims)

    def _write_column(self, results: list[Measurement], trims: bool) -> None:
        """One number of decimals for all: no more than the least certain of them has."""
        numbers = [each.median / self.scale for each in results]
        decimals = 1
        if trims:
            figures = [each.significant_figures for each in results]
            trimmed = [trim_sigfig(each.median, count) for each, count in zip(results, figures, strict=True)]
            numbers = [each / self.scale for each in trimmed]
            magnitudes = [math.ceil(math.log10(each.median / self.scale)) for each in results]
            decimals = max(0, min(count - size for count, size in zip(figures, magnitudes, strict=True)))
        written = [f"{each:.{decimals}f}" for each in numbers]
        width = max(map(len, written))
        warned = self.has_warnings and any(each.has_warnings for each in results)
        for each, text in zip(results, written, strict=True):
            mark = ""
            if warned:
                mark = f" (! {each.iqr / each.median * 100:.0f}%)" if each.has_warnings else " " * 6
            self.texts[id(each)] = text.rjust(width) + mark

    def _row_name(self, result: Measurement) -> str:
        environment = "" if result.task_spec.env is None else f"({result.task_spec.env})"
        return f"  {environment:<{self.environment_width}}  {result.as_row_name}"

    def text(self, title: str) -> str:
        """The table with its heading and its unit."""
        names = max(len(self._row_name(each)) for each in self.results)
        widths = [
            max(len(column), *[len(self.texts[id(each)]) for each in self.results if _column(each) == column])
            for column in self.columns
        ]
        heads = [f"  |  {column.center(width)}" for column, width in zip(self.columns, widths, strict=True)]
        head = " " * names + "".join(heads)
        lines = [f"[{f' {title} '.center(len(head) - 2, '-')}]", head]
        for threads in sorted({each.task_spec.num_threads for each in self.results}):
            lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            part = [each for each in self.results if each.task_spec.num_threads == threads]
            for name in ordered_unique(self._row_name(each) for each in part):
                row = [each for each in part if self._row_name(each) == name]
                lines.append(name.ljust(names) + "".join(self._cells(row, part, widths)))
        lines += ["", f"Times are in {unit_to_english(self.unit)}s ({self.unit})."]
        return "\n".join([*lines, *([_EXPLAINED] if self.has_warnings else []), ""])

    def _cells(self, row: list[Measurement], part: list[Measurement], widths: list[int]) -> Iterable[str]:
        for column, width in zip(self.columns, widths, strict=True):
            found = next((each for each in row if _column(each) == column), None)
            if found is None:
                yield "  |  " + " " * width
                continue
            in_rows = self.colours is Colorize.ROWWISE
            rivals = row if in_rows else [each for each in part if _column(each) == column]
            start = "" if self.colours is Colorize.NONE else _mark(found.median / min(each.median for each in rivals))
            yield f"  |  {start}{self.texts[id(found)].center(width)}{_END if start else ''}"


def _mark(times_the_best: float) -> str:
    return next((mark for limit, mark in _MARKS if times_the_best < limit), _SLOWEST)


def _title(result: Measurement) -> str:
    return result.task_spec.label or result.task_spec.stmt


def _column(result: Measurement) -> str:
    return result.task_spec.description or ""
