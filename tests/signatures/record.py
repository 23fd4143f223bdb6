"""What differs at present, why, and the page about it."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from . import builtin, python_signatures

KNOWN = Path(__file__).parent / "known.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "signatures.md"
START, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
ROWS = {
    "functions": "functions written in C++",
    "methods": "methods of `Tensor` written in C++",
    "calls by keyword and position": "calls of those by keyword and by position that PyTorch binds",
    "calls with numbers for tensors": "calls of those with a number in place of a tensor",
    "parameters": "parameters of Flambeau's, with their defaults",
    "classes and functions written in Python": "classes and functions written in Python",
    "methods written in Python": "methods of those classes",
    "parameters of those": "their parameters: name, position, default",
}

Differences = dict[str, list[str]]


def differences() -> tuple[Differences, Counter[str]]:
    """Everything that differs, by path, and how much was compared."""
    counts: Counter[str] = Counter()
    found: Differences = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # calls may warn, and a few print
        warnings.simplefilter("ignore")
        for compare in (builtin.compare, python_signatures.compare):
            for path, text in compare(counts):
                found.setdefault(path, []).append(text)
    return found, counts


def known() -> list[dict[str, Any]]:
    """The checked-in list: reasons, each with the differences that it explains."""
    entries: list[dict[str, Any]] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return entries


def unexplained(found: Differences) -> Differences:
    """What the list does not have."""
    listed = {(path, text) for entry in known() for path, texts in entry["differences"].items() for text in texts}
    result = {path: [text for text in texts if (path, text) not in listed] for path, texts in found.items()}
    return {path: texts for path, texts in result.items() if texts}


def gone(found: Differences) -> Differences:
    """What the list has, but is not different any more."""
    result: Differences = {}
    for entry in known():
        for path, texts in entry["differences"].items():
            result.setdefault(path, []).extend(text for text in texts if text not in found.get(path, []))
    return {path: texts for path, texts in result.items() if texts}


def shrink(found: Differences) -> None:
    """Take what is not different any more off the list."""
    obsolete = gone(found)
    entries = []
    for entry in known():
        left = {
            path: [text for text in texts if text not in obsolete.get(path, [])]
            for path, texts in entry["differences"].items()
        }
        left = {path: texts for path, texts in left.items() if texts}
        if left:
            entries.append({"reason": entry["reason"], "differences": left})
    KNOWN.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def table_of_counts(counts: Counter[str]) -> str:
    """How much was compared."""
    lines = ["| compared | number |", "|---|---|"]
    lines += [f"| {words} | {counts[row]:,} |" for row, words in ROWS.items()]
    return "\n".join([*lines, ""])


def table_of_differences() -> str:
    """What the list of known differences has."""
    lines = ["", "What differs, on purpose or for now:", "", "| where | what | why |", "|---|---|---|"]
    for entry in known():
        by_text: dict[tuple[str, ...], list[str]] = {}
        for path, texts in entry["differences"].items():
            by_text.setdefault(tuple(texts), []).append(path)
        for texts, paths in by_text.items():
            names = ", ".join(f"`{path}`" for path in paths[:6])
            if len(paths) > 6:
                names = f"{len(paths)} functions, such as {', '.join(f'`{path}`' for path in paths[:3])}"
            what = "; ".join(f"`{text}`" for text in texts[:2]) + (
                f" and {len(texts) - 2} more" if len(texts) > 2 else ""
            )
            lines.append(f"| {names} | {what} | {entry['reason']} |")
    return "\n".join([*lines, ""])


def written(page: str, counts: Counter[str]) -> str:
    """The page with a new table."""
    return (
        page[: page.index(START) + len(START)]
        + table_of_counts(counts)
        + table_of_differences()
        + page[page.index(END) :]
    )
