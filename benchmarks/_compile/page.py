"""The tables of `docs/compile.md` that are measured: lines of what was measured now, and the others as they stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import _measure

from .cases import CASES

PAGE = _measure.CHECKOUT / "docs" / "compile.md"

HEADINGS = {
    "times": ("PyTorch", "Flambeau", "compiled", "ratio"),
    "first": ("no cache", "cache", "step", "plain", "resident", "arrays"),
}
"""By the name between the marks in the page."""


def with_rows(page: str, table: str, rows: Mapping[str, Sequence[str]]) -> str:
    """The text of the page with these rows, by the names of cases, in a table."""
    begin, end = (f"<!-- {table}: {word} -->\n" for word in ("begin", "end"))
    before, _, rest = page.partition(begin)
    old, _, after = rest.partition(end)
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in old.splitlines() if line.startswith("|")]
    known = {name: found for name, *found in cells if name in CASES} | dict(rows)
    lines = [["", *HEADINGS[table]], ["---", *["--:"] * len(HEADINGS[table])]]
    lines += [[name, *known[name]] for name in CASES if name in known]
    text = "".join([f"| {' | '.join(each)} |\n" for each in lines]).replace("|  |", "| |")
    if table == "times":
        mean = _measure.geometric_mean([float(each[-1]) for each in known.values()])
        text += f"\nThe geometric mean of the ratios is {mean:.3f}.\n"
    return f"{before}{begin}{text}{end}{after}"


def write(table: str, rows: Mapping[str, Sequence[str]]) -> None:
    """Write rows of a table to the page."""
    PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), table, rows), encoding="utf-8")
