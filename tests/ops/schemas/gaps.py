"""The checked-in list of recorded calls that do not give PyTorch's results: `gaps.json`. It only becomes shorter."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from .excluded import excluded
from .survey import Outcome

FILE = Path(__file__).with_name("gaps.json")


def listed() -> dict[str, str]:
    """Why each operator of the list is there."""
    found: dict[str, str] = json.loads(FILE.read_text())
    return found


def problems(outcomes: Iterable[Outcome]) -> list[str]:
    """What differs and is not listed, and what is listed and does not differ."""
    known, found = listed(), []
    for each in outcomes:
        if excluded(each.operator) is not None:
            continue
        if each.kind == "same" and each.operator in known:
            found.append(f"{each.operator} passes: take it out of {FILE.name}")
        elif each.kind != "same" and each.operator not in known:
            found.append(f"{each.operator}: {each.kind}: {each.reason}")
    return found


def write(outcomes: Iterable[Outcome]) -> None:
    """Write the list again after a whole run."""
    gaps = {
        each.operator: f"{each.kind}: {each.reason}"
        for each in outcomes
        if each.kind != "same" and excluded(each.operator) is None
    }
    FILE.write_text(json.dumps(gaps, indent=0) + "\n")
