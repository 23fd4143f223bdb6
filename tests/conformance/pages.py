"""The list of known gaps, and the pages made from a run of the whole suite."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .run import Report

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
KNOWN = HERE / "known_gaps.json"
KNOWN_IN_STATES = HERE / "state_gaps.json"
PAGE = DOCS / "compatibility.md"
DATA = DOCS / "compatibility.json"

Gaps = dict[str, dict[str, str]]
"""entry -> aspect -> why it does not pass"""


def known_gaps(known: Path = KNOWN) -> Gaps:
    """The checked-in list, which may only become shorter."""
    return json.loads(known.read_text())  # type: ignore[no-any-return]


def gaps_in(reports: dict[str, Report]) -> Gaps:
    """What did not pass, with the first difference as the reason."""
    found: Gaps = {}
    for name, report in sorted(reports.items()):
        for aspect, result in report.items():
            if result["failed"]:
                found.setdefault(name, {})[aspect] = result["examples"][0]
    return found


def surprises(found: Gaps, known: Gaps, examined: Iterator[str]) -> tuple[list[str], list[str]]:
    """What fails and is not listed; what is listed and does not fail any more."""
    new = [
        f"{name}, {aspect}: {reason}"
        for name, aspects in found.items()
        for aspect, reason in aspects.items()
        if aspect not in known.get(name, {})
    ]
    stale = [
        f"{name}, {aspect}" for name in examined for aspect in known.get(name, {}) if aspect not in found.get(name, {})
    ]
    return new, stale


def write_known_gaps(found: Gaps, known: Path = KNOWN) -> None:
    """The list as it is now; reasons that somebody has written stay."""
    before = known_gaps(known) if known.exists() else {}
    kept = {
        name: {aspect: before.get(name, {}).get(aspect, reason) for aspect, reason in aspects.items()}
        for name, aspects in found.items()
    }
    known.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def status(report: Report) -> str:
    """One word for an entry."""
    if not report:
        return "CUDA only"
    if not any(result["failed"] for result in report.values()):
        return "Stable"
    values = [result for aspect, result in report.items() if aspect.startswith("values ")]
    return "Missing" if all(result["failed"] == result["checked"] for result in values) else "Partial"


def summary(reports: dict[str, Report], main_dtypes: dict[str, str]) -> dict[str, int]:
    """How many entries pass, by the two counts that the page states."""
    in_main = in_all = 0
    for name, report in reports.items():
        if not report:
            continue
        failing = [aspect for aspect, result in report.items() if result["failed"]]
        other_dtypes = {f"values {dtype}" for dtype in _dtypes(report)} - {f"values {main_dtypes[name]}"}
        in_main += not [aspect for aspect in failing if aspect not in other_dtypes]
        in_all += not failing
    return {"entries": len(reports), "main dtype": in_main, "all dtypes": in_all}


def _dtypes(report: Report) -> list[str]:
    return [aspect.removeprefix("values ") for aspect in report if aspect.startswith("values ")]


def write_pages(reports: dict[str, Report], main_dtypes: dict[str, str], version: str) -> None:
    """`docs/compatibility.json` and `docs/compatibility.md`."""
    known = known_gaps()
    data: dict[str, Any] = {
        "pytorch": version,
        "summary": summary(reports, main_dtypes),
        "operators": {
            name: {
                "status": status(report),
                "samples": sum(result["checked"] for result in report.values()),
                "dtypes": _dtypes(report),
                "gaps": known.get(name, {}),
            }
            for name, report in sorted(reports.items())
        },
    }
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(data))


_HEAD = """\
# Compatibility with PyTorch, operator by operator

Made by `make conformance`; do not edit. PyTorch's wheel carries a database of its operators with sample inputs. For
each entry Flambeau runs on the same inputs as PyTorch {version}, and the two are compared: values, dtypes, shapes,
memory shared with inputs, in every dtype that the entry lists for the CPU; strides; inputs with gaps in memory; the
method, the in-place form and `out=`; shapes and dtypes on the meta device; the type of error for wrong input; and in
double precision, real and complex, gradients, gradients of gradients and forward mode.

| | entries |
|---|---|
| in the database | {entries} |
| pass everything in float32 (or the entry's first dtype where it has no float32) | {main} |
| pass everything in all dtypes that they list | {all} |
{statuses}
**Stable**: everything passes. **Partial**: the column says what does not. **Missing**: not there yet. **CUDA only**:
the database has no CPU dtype for it. The same data for programs: [compatibility.json](compatibility.json).

| operator | status | samples | what differs |
|---|---|---|---|
"""


def page(data: dict[str, Any]) -> str:
    """The page for readers."""
    operators = data["operators"]
    counts = Counter(operator["status"] for operator in operators.values())
    head = _HEAD.format(
        version=data["pytorch"],
        entries=data["summary"]["entries"],
        main=data["summary"]["main dtype"],
        all=data["summary"]["all dtypes"],
        statuses="".join(f"| {name} | {count} |\n" for name, count in sorted(counts.items())),
    )
    rows = (
        f"| `{name}` | {operator['status']} | {operator['samples']} | {_reasons(operator['gaps'])} |\n"
        for name, operator in operators.items()
    )
    return head + "".join(rows)


def _reasons(gaps: dict[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for aspect, reason in gaps.items():
        by_reason.setdefault(reason, []).append(aspect)
    return "; ".join(f"{', '.join(names)}: {_cell(reason)}" for reason, names in by_reason.items())


def _cell(text: str) -> str:
    return text.split(" [SampleInput", maxsplit=1)[0].replace("|", "\\|").replace("\n", " ")[:160]
