"""Two runs as one HTML page: the first difference, and how it grows layer by layer and step by step."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

from ._judge import Verdict
from ._trace import PHASES, Trace

_MOST_POINTS = 20_000


def page(one: Trace, other: Trace, verdict: Verdict, text: str, program: str) -> str:
    """The text of the page."""
    title = f"{one.title} and {other.title}"
    document = {
        "title": title,
        "about": [one.about, other.about],
        "text": text,
        "program": program,
        "first": _position_of_first(verdict),
        "points": _points(one, verdict),
        **_layers(one, verdict),
    }
    data = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")  # so that no text can end the element
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return template.replace("<title>Comparison</title>", f"<title>{html.escape(title)}</title>").replace(
        "__DATA__", data
    )


def _logarithm(size: float) -> float | None:
    """The decimal logarithm of a relative difference; None: there is no difference."""
    if size <= 0:
        return None
    return 2.0 if math.isinf(size) else round(math.log10(max(size, 1e-18)), 2)


def _position_of_first(verdict: Verdict) -> int:
    """Among the pairs; -1: nothing differs."""
    if verdict.first is None:
        return -1
    for position, (i, j) in enumerate(verdict.pairs):
        mine, theirs = verdict.first.one, verdict.first.other
        if (mine is not None and i >= mine) or (mine is None and theirs is not None and j >= theirs):
            return position
    return len(verdict.pairs) - 1


def _points(one: Trace, verdict: Verdict) -> list[dict[str, Any]]:
    """The ops that both runs have; where there are many, those that differ, and some of the others."""
    step = max(1, len(verdict.pairs) // _MOST_POINTS)
    found = []
    for position, ((i, _), size) in enumerate(zip(verdict.pairs, verdict.sizes, strict=True)):
        entry = one.entries[i]
        if entry.is_mark or (not size and position % step):
            continue
        found.append(
            {
                "at": position,
                "name": entry.name,
                "module": entry.module,
                "line": entry.line,
                "step": entry.step,
                "phase": PHASES[entry.phase],
                "size": _logarithm(size),
            }
        )
    return found[: 2 * _MOST_POINTS]


def _layers(one: Trace, verdict: Verdict) -> dict[str, Any]:
    """The largest difference of each module's results, and of its gradients, in each step."""
    rows: dict[str, dict[int, float]] = {}
    last = 0
    for (i, _), size in zip(verdict.pairs, verdict.sizes, strict=True):
        entry = one.entries[i]
        if entry.is_mark:
            name = f"{entry.name} {entry.module}"
            cells = rows.setdefault(name, {})
            cells[entry.step] = max(size, cells.get(entry.step, 0.0))
            last = max(last, entry.step)
    shown = [{"name": name, "cells": [_logarithm(cells.get(step, 0.0)) for step in range(last + 1)]}
             for name, cells in rows.items()]  # fmt: skip
    return {"layers": shown, "steps": last + 1}
