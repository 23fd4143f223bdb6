"""Run a program in both environments and compare what it computed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .child import MARK

HERE = Path(__file__).parent
TOLERANCE = 1e-3
"""Relative to the largest number of a result: programs train, so that the last bits of float32 grow."""


class Environment:
    """A Python with libraries, and the `torch` that they find there."""

    def __init__(self, folder: Path, libraries: Path | None = None) -> None:
        self.python = folder / "bin" / "python"
        self.libraries = libraries

    def variables(self) -> dict[str, str]:
        """The environment variables of its processes: libraries stay off the network, and find what they link with."""
        variables = {**os.environ, "HF_HUB_OFFLINE": "1", "YOLO_CONFIG_DIR": tempfile.gettempdir(), "TQDM_DISABLE": "1"}
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            variables.pop(name, None)
        if self.libraries is not None:
            variables["LD_LIBRARY_PATH"] = str(self.libraries)
        return variables

    def run(self, program: Path, only: list[str], limit: float, times: int = 1) -> dict[str, Any]:
        """What `child.py` reports of a program whose cases run so many times, or that it had to be ended."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    [str(self.python), "-X", "faulthandler", str(HERE / "child.py"), str(program), str(times), *only],
                    cwd=folder,
                    env=self.variables(),
                    capture_output=True,
                    text=True,
                    timeout=limit,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return {"loading": {"error": f"not done after {limit:.0f} s", "place": ""}, "cases": {}}
        for line in done.stdout.splitlines():
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))  # type: ignore[no-any-return]
        error = f"ended with {done.returncode}: {' '.join(done.stderr[-300:].split())}"
        return {"loading": {"error": error, "place": ""}, "cases": {}}


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference of two results relative to the largest number; infinite where they are of other kinds."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or ours.keys() != theirs.keys():
            return float("inf")
        return max((difference(ours[key], theirs[key]) for key in theirs), default=0.0)
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return float("inf")
        if all(_is_number(each) for each in (*theirs, *ours)):
            largest = max((abs(each) for each in theirs), default=0.0)
            most = max((abs(a - b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
            return most / largest if most else 0.0
        return max((difference(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    if _is_number(ours) and _is_number(theirs):
        return difference([ours], [theirs])
    return 0.0 if ours == theirs else float("inf")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def differing(ours: Any, theirs: Any) -> list[str]:
    """The names of the results that differ by more than the tolerance."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return []
    return [name for name in theirs if not difference(ours.get(name), theirs[name]) <= TOLERANCE]


def compared(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """For every case how it went: `passes`, the difference, the times, and what went wrong."""
    found = {}
    for name in theirs["cases"] or ours["cases"] or {"main": {}}:
        mine = ours["cases"].get(name) or ours["loading"] or {"error": "did not run"}
        oracle = theirs["cases"].get(name) or theirs["loading"] or {"error": "did not run"}
        entry: dict[str, Any] = {"passes": False}
        if "error" in oracle:
            entry["why"] = f"PyTorch: {oracle['error']}"
        elif "error" in mine:
            entry["why"] = mine["error"]
            entry["place"] = mine.get("place", "")
            entry["trace"] = mine.get("trace", "")
        else:
            entry["difference"] = difference(mine["numbers"], oracle["numbers"])
            entry["passes"] = entry["difference"] <= TOLERANCE
            if not entry["passes"]:
                entry["why"] = "other numbers: " + ", ".join(differing(mine["numbers"], oracle["numbers"]))
        if "seconds" in mine and "seconds" in oracle:
            entry["seconds"], entry["pytorch_seconds"] = round(mine["seconds"], 3), round(oracle["seconds"], 3)
        if "again" in mine and "again" in oracle:
            entry["again"], entry["pytorch_again"] = round(mine["again"], 3), round(oracle["again"], 3)
        found[name] = entry
    return {
        "cases": found,
        "import_seconds": round(ours.get("import_seconds", 0.0), 2),
        "pytorch_import_seconds": round(theirs.get("import_seconds", 0.0), 2),
    }
