"""The page about performance says what the measurements say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"


def results(**tables: Any) -> dict[str, Any]:
    """What train_steps.py writes, with the given tables."""
    machine = {"processor": "Abacus 3000", "architecture": "wood", "cores": 2, "memory_gb": 8, "system": "Linux"}
    machine |= {"python": "3.12.1", "numpy": "2.2.0", "load": 0.25}
    versions = {"flambeau": "0.2.0", "torch": "2.13.0+cpu"}
    about = {"threads": 2, "quick": False, "date": "2026-02-03"}
    return {"machine": machine, "versions": versions, **about, **tables}


def timed(name: str, ours: float, theirs: float) -> dict[str, Any]:
    row = {"name": name, "status": "measured", "flambeau_ms": ours, "pytorch_ms": theirs}
    return {**row, "ratio": ours / theirs}


def test_what_was_written_by_hand_stays(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    write(tmp_path, results(time=TIMES))
    generated = page.read_text(encoding="utf-8")
    end = "<!-- by hand -->\n\n## Of its own\n"
    page.write_text(f"old\n{end}", encoding="utf-8")
    for _ in range(2):
        write(tmp_path, results(time=TIMES))
        assert page.read_text(encoding="utf-8") == f"{generated}\n{end}"


TIMES = [
    timed("quick <one>", 1.0, 4.0),
    timed("slow", 3000.0, 1.5),
    {"name": "broken", "status": "failed (ValueError: a|b)", "ratio": None},
]


def write(folder: Path, *contents: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the tool on files with these contents."""
    files = [folder / f"{index}.json" for index in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "performance_page.py"), "--folder", str(folder), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tables_and_summary(tmp_path: Path) -> None:
    memory = [{"name": "slow", "status": "measured", "flambeau_mb": 50.0, "pytorch_mb": 100.0, "ratio": 0.5}]
    run = write(tmp_path, results(time=TIMES), results(memory=memory))
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "| quick <one> | 1.00 | 4.00 | 0.250 |" in page
    assert "| slow | 3,000 | 1.50 | 2,000 |" in page
    assert "| broken | failed (ValueError: a\\|b) |  |  |" in page
    assert "Geometric mean of 2 ratios: **22.4**; the worst is 2,000 (slow)." in page
    assert "| slow | 50.0 | 100 | 0.500 |" in page
    assert "Measured on 3 February 2026: Abacus 3000 (wood), 2 cores, 8 GB" in page
    assert "torch==2.13.0\n" in page
    assert "## The first call" not in page  # it was not measured


def test_bars_of_the_plot_start_at_one(tmp_path: Path) -> None:
    assert write(tmp_path, results(time=TIMES)).returncode == 0
    root = ET.parse(tmp_path / "performance.svg").getroot()
    bars = [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in root.iter(SVG + "rect") if bar.get("x")]
    labels = [label.text for label in root.iter(SVG + "text")]
    ones = [float(mark.get("x", "")) for mark in root.iter(SVG + "text") if mark.text == "1"]
    assert len(bars) == len(TIMES) - 1  # the one that failed has none
    assert [round(sum(bars[0]), 1), bars[1][0]] == [ones[0], ones[0]]
    assert bars[1][1] / bars[0][1] == pytest.approx(3.30103 / 0.60206, rel=2e-3)
    assert "quick <one>" in labels


def test_results_of_two_machines_do_not_mix(tmp_path: Path) -> None:
    other = results(memory=[])
    other["threads"] = 1
    run = write(tmp_path, results(time=TIMES), other)
    assert run.returncode != 0
    assert re.search(r"its threads is 1, that of the files before it is 2", run.stderr)


def test_times_are_needed(tmp_path: Path) -> None:
    run = write(tmp_path, results(memory=[]))
    assert run.returncode != 0
    assert "none of the files has times" in run.stderr


def measured(name: str, size: int, direction: str, ratio: float | None) -> dict[str, Any]:
    return {"name": name, "size": size, "direction": direction, "ratio": ratio}


def test_table_of_single_ops(tmp_path: Path) -> None:
    """It replaces what stands between its marks, and lists what is above 2 with the reasons."""
    page, file = tmp_path / "performance.md", tmp_path / "ops.json"
    begin, end = "<!-- single ops: written by tools/ops_table.py -->", "<!-- end of single ops -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    cases = [
        measured("rand", 10, "forward", 2.5),
        measured("add", 10, "forward", 0.4),
        measured("add", 10, "backward", 2.75),
        measured("add", 10_000, "forward", 1.5),
        measured("odd", 10, "forward", None),
    ]
    machine = {"python": "3.12.1", "machine": "wood", "cores": 2}
    content = {"machine": machine, "date": "2026-02-03", "pytorch": "2.13.0", "cases": cases}
    file.write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "ops_table.py"), "--page", str(page), str(file)]
    subprocess.run(command, check=True)
    text = page.read_text(encoding="utf-8")
    assert re.fullmatch(f"before\n{begin}\n.*\n{end}\nafter\n", text, re.DOTALL)
    assert "old" not in text
    assert "on 3 February 2026 on 2 cores (wood)" in text
    assert "| 10 | 3 | 1.00 | 2.75 | 1 | 2 |" in text
    assert "- random numbers, which take a lock, through several Python calls: `rand` 2.5\n" in text
    assert "- not looked into: `add` backward 2.8\n" in text
    assert "Above 2 at 10,000 elements: none." in text
