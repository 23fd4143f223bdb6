"""Write the table of single ops in `docs/performance.md` from what `benchmarks/ops.py` measured.

    python benchmarks/ops.py --json ops.json
    python tools/ops_table.py ops.json

Several files may be given, one for each size. What stands between the two marks of the page is replaced.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- single ops: written by tools/ops_table.py -->", "<!-- end of single ops -->"
LIMIT = 2.0

Case = dict[str, Any]

REASONS = {
    "lists of tensors, several Python calls for each": "_foreach",
    "a tensor made for each of many parts": "split at",
    "random numbers, which take a lock, through several Python calls": "rand|_ at|_gamma|poisson at|multinomial",
    "several calls of NumPy's, or one for each element": "masked|sigmoid|erf|remainder|floor_divide",
    "positions that are checked in a pass of their own": "gather|scatter|index_put|embedding|take",
    "ten and more Python calls where PyTorch takes 1 to 8 us": (
        "(interpolate|pad|pool|unfold|repeat_|outer|cat|stack|fft|conv2d|lerp|full).* at (10|10000)$"
    ),
    "reductions and norms by several calls of NumPy's": "(aminmax|norm|nansum|min|max|dot|cosine|count).* at 10$",
    "the smallest and the largest element in two passes": "aminmax",
    "convolutions by a library, with a change of layout before and after": "conv",
    "linear algebra by OpenBLAS, where PyTorch has MKL": "linalg",
    "sorted by NumPy": "sort|unique",
    "one point after the other": "grid_sample",
    "copied backwards by NumPy": "flip",
}
"""Why ops are above the limit, each by a pattern of "name at size"; the first that fits counts."""


def reason_of(case: Case) -> str:
    """Why an op takes longer than it should."""
    line = f"{case['name']} at {case['size']}"
    return next((reason for reason, pattern in REASONS.items() if re.search(pattern, line)), "not looked into")


def read(paths: Sequence[Path]) -> tuple[list[Case], str]:
    """The cases that were measured in all files, and what they were measured on."""
    cases: list[Case] = []
    machines = []
    for path in paths:
        results = json.loads(path.read_text(encoding="utf-8"))
        cases += [case for case in results["cases"] if case["ratio"] is not None]
        machine, date = results["machine"], datetime.date.fromisoformat(results["date"])
        machines.append(
            f"{date.day} {date:%B %Y} on {machine['cores']} cores ({machine['machine']}), Python {machine['python']}, "
            f"PyTorch {results['pytorch']}"
        )
    if len(set(machines)) != 1:
        raise ValueError(f"the files come from different machines: {sorted(set(machines))}")
    return cases, machines[0]


def title(case: Case) -> str:
    """How the list calls an op."""
    return f"`{case['name']}`{' backward' if case['direction'] == 'backward' else ''} {case['ratio']:.1f}"


def block(cases: Sequence[Case], machine: str) -> str:
    """What stands between the marks."""
    lines = [
        f"Measured by `benchmarks/ops.py` on {machine}, one thread for both.",
        "A line is an op with so many elements, forward or backward; its ratio is Flambeau's fastest burst of calls",
        "over PyTorch's. The columns forward and backward are geometric means.",
        "",
        "| elements | lines | forward | backward | at most 1 | above 2 |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    sizes = sorted({case["size"] for case in cases})
    for size in sizes:
        of_size = [case for case in cases if case["size"] == size]
        means = [
            statistics.geometric_mean([case["ratio"] for case in of_size if case["direction"] == direction] or [1.0])
            for direction in ("forward", "backward")
        ]
        quick, slow = (
            sum(test) for test in ([c["ratio"] <= 1 for c in of_size], [c["ratio"] > LIMIT for c in of_size])
        )
        lines.append(f"| {size:,} | {len(of_size)} | {means[0]:.2f} | {means[1]:.2f} | {quick} | {slow} |")
    for size in sizes:
        above = [case for case in cases if case["size"] == size and case["ratio"] > LIMIT]
        lines += ["", f"Above 2 at {size:,} elements{', and why:' if above else ': none.'}", ""]
        for reason in sorted({reason_of(case) for case in above}):
            found = sorted((each for each in above if reason_of(each) == reason), key=lambda each: -each["ratio"])
            lines.append(f"- {reason}: {', '.join(map(title, found))}")
    return "\n".join(lines).rstrip() + "\n"


def replaced(page: str, written: str) -> str:
    """The page with another text between its marks."""
    start, end = page.find(BEGIN), page.find(END)
    if not 0 <= start < end:
        raise ValueError(f"the page has no two marks {BEGIN} and {END}")
    return f"{page[: start + len(BEGIN)]}\n\n{written}\n{page[end:]}"


def main() -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Write the table of single ops in docs/performance.md.")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="written by benchmarks/ops.py --json")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page; by default docs/performance.md")
    options = parser.parse_args()
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(replaced(page, block(*read(options.files))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
