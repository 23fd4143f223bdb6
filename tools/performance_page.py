"""Write `docs/performance.md` and its plot, `docs/performance.svg`, from what `benchmarks/train_steps.py` measured.

    python benchmarks/train_steps.py --all --json performance.json
    python tools/performance_page.py performance.json

Several files may be given, one for each mode; where two have the same table, the later one counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
BY_HAND = "<!-- by hand -->"
"""What follows this in the page does not come from `train_steps.py`."""
TABLES = ("time", "memory", "first", "busy")

Row = dict[str, Any]
Results = dict[str, Any]


def read(paths: Sequence[Path]) -> Results:
    """The results of all files together; raise ValueError if they come from different machines or settings."""
    merged: Results = {}
    for path in paths:
        results = json.loads(path.read_text(encoding="utf-8"))
        for key in ("machine", "versions", "threads"):
            known, new = merged.setdefault(key, results[key]), results[key]
            if without_load(known) != without_load(new):
                raise ValueError(f"{path}: its {key} is {new}, that of the files before it is {known}")
        merged["load"] = max(merged.get("load", 0.0), results["machine"].get("load", 0.0))
        merged["quick"] = merged.get("quick", False) or results["quick"]
        merged["date"] = max(merged.get("date", ""), results["date"])
        merged.update({table: results[table] for table in TABLES if table in results})
    if not merged.get("time"):
        raise ValueError("none of the files has times: run benchmarks/train_steps.py without --memory, --first, --busy")
    return merged


def without_load(described: Any) -> Any:
    """A description of the machine without what changes from minute to minute."""
    return {k: v for k, v in described.items() if k != "load"} if isinstance(described, dict) else described


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def markdown_table(rows: Sequence[Row], columns: dict[str, str]) -> list[str]:
    """A table with a line for each row; a row that was not measured shows why instead."""
    lines = [f"| workload | {' | '.join(columns.values())} |", "|---|" + "---:|" * len(columns)]
    for row in rows:
        if row["ratio"] is None:
            cells = [row["status"].splitlines()[0].replace("|", "\\|"), *[""] * (len(columns) - 1)]
        else:
            cells = [number(row[key]) for key in columns]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    return lines


def summary(rows: Sequence[Row], what: str) -> str:
    """One sentence: the geometric mean of the ratios and the worst of them."""
    measured = [row for row in rows if row["ratio"] is not None]
    if not measured:
        return f"No {what} was measured."
    mean = statistics.geometric_mean(row["ratio"] for row in measured)
    worst = max(measured, key=lambda row: float(row["ratio"]))
    return (
        f"Geometric mean of {len(measured)} ratios: **{number(mean)}**; "
        f"the worst is {number(worst['ratio'])} ({worst['name']})."
    )


def conditions(results: Results) -> str:
    """What the numbers of this page were measured on."""
    machine, versions = results["machine"], results["versions"]
    processor = f"{machine['processor']} ({machine['architecture']}), {machine['cores']} cores"
    quick = " with `--quick`, that is, in few rounds" if results["quick"] else ""
    date = datetime.date.fromisoformat(results["date"])
    load = ""
    if results["load"]:
        load = f" The load average before was {results['load']:.1f}:\n"
        load += "other programs take cores away and make times scatter."
    return (
        f"Measured on {date.day} {date:%B %Y}: {processor}, {machine['memory_gb']} GB of memory, {machine['system']};\n"
        f"Python {machine['python']}, NumPy {machine['numpy']}, Flambeau {versions['flambeau']}, "
        f"PyTorch {versions['torch']};\n"
        f"{results['threads']} {'thread' if results['threads'] == 1 else 'threads'} for both, measured{quick}.{load}"
    )


def page(results: Results) -> str:
    """The whole page."""
    versions = results["versions"]
    lines = [
        "# Performance",
        "",
        "How long training steps take beside PyTorch. Both libraries run the same program in turns. A ratio is",
        "Flambeau's number over PyTorch's: below 1, Flambeau needs less. The steps below are eager;",
        "[torch.compile](compile.md#measured) has a table of its own, and [CUDA](cuda.md) has those of a GPU.",
        "",
        conditions(results),
        "",
        "![Ratio of Flambeau's time to PyTorch's for each workload](performance.svg)",
        "",
        "## Time of a step",
        "",
        *markdown_table(
            results["time"], {"flambeau_ms": "Flambeau, ms", "pytorch_ms": "PyTorch, ms", "ratio": "ratio"}
        ),
        "",
        summary(results["time"], "time"),
        "",
        "The training steps clear the gradients, compute the loss, go backward and update the parameters. Before a",
        "workload is timed, both frameworks run it from the same seed, and must get the same losses.",
        "",
    ]
    if results.get("memory"):
        lines += [
            "## Memory",
            "",
            "How much the first steps of a new process add to its peak resident memory.",
            "",
            *markdown_table(
                results["memory"], {"flambeau_mb": "Flambeau, MB", "pytorch_mb": "PyTorch, MB", "ratio": "ratio"}
            ),
            "",
            summary(results["memory"], "memory"),
            "",
        ]
    if results.get("first"):
        columns = {
            "cold_ms": "Flambeau, empty cache, ms",
            "warm_ms": "Flambeau, filled cache, ms",
            "pytorch_ms": "PyTorch, ms",
            "ratio": "ratio, empty",
            "warm_ratio": "ratio, filled",
        }
        lines += [
            "## The first call",
            "",
            "The first step of a new process, after the import and after the model was built: once with an empty cache",
            "of generated code (`FLAMBEAU_CACHE_DIR`), and again with what the first process left there.",
            "",
            *markdown_table(results["first"], columns),
            "",
            summary(results["first"], "first call"),
            "",
        ]
    if results.get("busy"):
        columns = {
            "flambeau_idle_ms": "Flambeau alone, ms",
            "flambeau_busy_ms": "busy, ms",
            "flambeau_slowdown": "factor",
            "pytorch_idle_ms": "PyTorch alone, ms",
            "pytorch_busy_ms": "busy, ms",
            "pytorch_slowdown": "factor",
        }
        lines += [
            "## On a busy machine",
            "",
            "The time of a step while another process keeps one core busy, and the factor by which it grows.",
            "",
            *markdown_table(results["busy"], columns),
            "",
        ]
    lines += [
        "## How to reproduce it",
        "",
        "    pip install torch==" + str(versions["torch"]).partition("+")[0],
        "    python benchmarks/train_steps.py --all --json performance.json",
        "    python tools/performance_page.py performance.json",
    ]
    return "\n".join(lines) + "\n"


# ----- the plot -------------------------------------------------------------------------------------------------------

LEFT, RIGHT, TOP, ROW, WIDTH = 230, 60, 64, 24, 820
FASTER, SLOWER, INK, GRID = "#2a7f86", "#d9772b", "#222222", "#d8d8d8"
FONT = "font-family='Helvetica, Arial, sans-serif'"


def plot(rows: Sequence[Row]) -> str:
    """A bar for each ratio, from 1 to the left (faster) or to the right (slower), on a logarithmic axis."""
    rows = [row for row in rows if row["ratio"] is not None]
    exponents = [math.log10(row["ratio"]) for row in rows]
    low, high = math.floor(min(*exponents, -0.5)), math.ceil(max(*exponents, 0.5))
    scale = (WIDTH - LEFT - RIGHT) / (high - low)
    bottom = TOP + ROW * len(rows)

    def across(exponent: float) -> float:
        return LEFT + (exponent - low) * scale

    def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 12) -> str:
        place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}'"
        return f"<text {place} fill='{INK}' {FONT}>{escape(words)}</text>"

    def line(x: float, colour: str, width: float) -> str:
        ends = f"x1='{x:.1f}' x2='{x:.1f}' y1='{TOP - 6}' y2='{bottom}'"
        return f"<line {ends} stroke='{colour}' stroke-width='{width}'/>"

    title = "Time of Flambeau over time of PyTorch"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {bottom + 36}' role='img'>",
        f"<title>{title}</title>",
        f"<rect width='{WIDTH}' height='{bottom + 36}' fill='white'/>",
        text(WIDTH / 2, 22, title, size=16),
        text(across(0) - 8, TOP - 14, "Flambeau faster", "end"),
        text(across(0) + 8, TOP - 14, "PyTorch faster", "start"),
    ]
    for power in range(low, high + 1):
        parts.append(line(across(power), GRID, 1))
        parts.append(text(across(power), bottom + 18, f"{10.0**power:g}"))
    for index, (row, exponent) in enumerate(zip(rows, exponents, strict=True)):
        y = TOP + ROW * index
        start, end = sorted((across(0), across(exponent)))
        colour = FASTER if exponent <= 0 else SLOWER
        bar = f"x='{start:.1f}' y='{y + 4}' width='{end - start:.1f}' height='{ROW - 8}'"
        parts.append(f"<rect {bar} fill='{colour}'/>")
        parts.append(text(LEFT - 10, y + 16, row["name"], "end"))
        beside, anchor = (-5, "end") if exponent <= 0 else (5, "start")
        parts.append(text(across(exponent) + beside, y + 16, number(row["ratio"]), anchor, 11))
    parts += [line(across(0), INK, 1.5), "</svg>"]
    return "\n".join(parts) + "\n"


def written_by_hand(text: str) -> str:
    """The end of a page, which is kept as it is."""
    mark = text.find(BY_HAND)
    return "" if mark < 0 else f"\n{text[mark:]}"


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description="Write docs/performance.md and docs/performance.svg.")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="written by train_steps.py --json")
    parser.add_argument("--folder", type=Path, default=DOCS, help="where to write; by default docs/")
    options = parser.parse_args()
    results = read(options.files)
    target = options.folder / "performance.md"
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(page(results) + written_by_hand(before), encoding="utf-8")
    (options.folder / "performance.svg").write_text(plot(results["time"]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
