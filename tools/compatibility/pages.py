"""The pages about libraries and programs, from the results of the last runs."""

from __future__ import annotations

import json
from typing import Any

from .compare import HERE, TOLERANCE
from .suites import GAPS
from .suites import RESULTS as SUITE_RESULTS

DOCS = HERE.parents[1] / "docs"


def _summary(kind: str, name: str) -> str:
    text = (HERE / kind / f"{name}.py").read_text()
    return text.partition('"""')[2].partition('"""')[0].strip().rstrip(".")


def _times(cases: dict[str, Any]) -> tuple[float, float]:
    timed = [each for each in cases.values() if "seconds" in each]
    return sum(each["seconds"] for each in timed), sum(each["pytorch_seconds"] for each in timed)


def _largest(cases: dict[str, Any]) -> str:
    found = [each["difference"] for each in cases.values() if each["passes"]]
    return f"{max(found):.0e}" if found else ""


def _failures(results: dict[str, Any]) -> list[str]:
    lines = []
    for name, result in results.items():
        for case, each in result["cases"].items():
            if not each["passes"]:
                where = "" if case == "main" else f", {case}"
                lines.append(f"- **{name}**{where}: {each.get('why', '')[:240]}")
    return lines


def _libraries(results: dict[str, Any]) -> str:
    lines = [
        "# Libraries on Flambeau",
        "",
        "Written by `python -m tools.compatibility`; do not edit. Each library is installed as it is on PyPI into an",
        "environment without PyTorch, where the distribution in `packages/torch-shim` provides `torch`. A program,",
        "`tools/compatibility/quickstarts/NAME.py`, runs there and in an environment with PyTorch 2.13.0. Its numbers",
        f"(losses, outputs, gradients, tokens) must agree within {TOLERANCE:g} of the largest, texts exactly.",
        "",
        f"{_all_pass(results)} of {len(results)} libraries run whole.",
        "",
        "| library | version | cases that agree | largest difference | seconds | PyTorch's | import, s | PyTorch's |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, result in sorted(results.items()):
        cases = result["cases"]
        ours, theirs = _times(cases)
        lines.append(
            f"| {name} | {result['version']} | {sum(each['passes'] for each in cases.values())} of {len(cases)} | "
            f"{_largest(cases)} | {ours:.2f} | {theirs:.2f} | {result['import_seconds']:.1f} | "
            f"{result['pytorch_import_seconds']:.1f} |"
        )
    lines += ["", *_NOTE, "", "## What does not run", "", *(_failures(results) or ["Nothing."]), "", *_suites(), ""]
    return "\n".join(lines)


def _suites() -> list[str]:
    """The section about the libraries' own tests."""
    results: dict[str, Any] = json.loads(SUITE_RESULTS.read_text())
    gaps: dict[str, dict[str, str]] = json.loads(GAPS.read_text())
    lines = [
        "## Libraries' own tests",
        "",
        "`python -m tools.compatibility --suites` takes the tests from the libraries' source distributions and runs",
        "them under PyTorch 2.13.0 and with Flambeau standing in for it. What PyTorch passes counts. A run that ends",
        "at a limit of seconds counts the tests that PyTorch had reached. What differs is listed in",
        "`tools/compatibility/suite_gaps.json`, which only becomes shorter. The distribution of transformers has the",
        "tests of every model without the models: small ones, and tests of `generate` and `torch.export`, are in",
        "`tools/compatibility/added`.",
        "",
        "| library | version | PyTorch passes | of these Flambeau | ended after |",
        "|---|---|--:|--:|--:|",
    ]
    for name, each in sorted(results.items()):
        limit = f"{each['seconds']} s" if "seconds" in each else ""
        lines.append(f"| {name} | {each['version']} | {each['pytorch']:,} | {each['flambeau']:,} | {limit} |")
    ours, theirs = (sum(each[which] for each in results.values()) for which in ("flambeau", "pytorch"))
    lines += ["", f"Together {ours:,} of {theirs:,}. What differs:", ""]
    differing = [(name, test, why) for name, found in sorted(gaps.items()) for test, why in sorted(found.items())]
    return [*lines, *(f"- **{name}**, {test.rpartition('::')[2]}: {why[:160]}" for name, test, why in differing)]


_NOTE = [
    "Seconds are those of one run on a machine with two cores that may have had other work, the first use of",
    "everything included (on Flambeau the compilation of kernels that are not in the cache): an order of magnitude, no",
    "benchmark. [performance.md](performance.md) has those. The command may run some of them, or some cases, alone:",
    "the others are then shown as an earlier run found them.",
]

_AGAIN = [
    "`again` is the quickest further run in the same process: what is compiled, imported or planned once is there",
    "already.",
]


def _all_pass(results: dict[str, Any]) -> int:
    return sum(all(each["passes"] for each in result["cases"].values()) for result in results.values())


def _programs(results: dict[str, Any]) -> str:
    lines = [
        "# Programs on Flambeau",
        "",
        "Written by `python -m tools.compatibility`; do not edit. Programs in the style of well-known examples, in",
        "`tools/compatibility/programs/`, run with Flambeau as `torch` and with PyTorch 2.13.0: the losses of",
        f"all iterations must agree within {TOLERANCE:g}, texts exactly.",
        "",
        "| program | agrees | largest difference | first, s | PyTorch's | ratio | again, s | PyTorch's | ratio |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, result in sorted(results.items()):
        for case, each in result["cases"].items():
            title = _summary("programs", name).partition(":")[0] if case == "main" else case
            first = _beside(each, "seconds", "pytorch_seconds")
            again = _beside(each, "again", "pytorch_again")
            agrees = "yes" if each["passes"] else "no"
            lines.append(f"| {title} | {agrees} | {_largest({case: each})} | {first} | {again} |")
    lines += ["", *_NOTE, "", *_AGAIN, "", "## What differs", "", *(_failures(results) or ["Nothing."]), ""]
    return "\n".join(lines)


def _beside(case: dict[str, Any], ours: str, theirs: str) -> str:
    """Three columns: our time, PyTorch's, and the ratio."""
    if ours not in case:
        return " | | "
    return f"{case[ours]:.2f} | {case[theirs]:.2f} | {case[ours] / case[theirs]:.2f}"


def write_pages(results: dict[str, Any]) -> None:
    """Write both pages."""
    (DOCS / "libraries.md").write_text(_libraries(results.get("quickstarts", {})))
    (DOCS / "programs.md").write_text(_programs(results.get("programs", {})))
