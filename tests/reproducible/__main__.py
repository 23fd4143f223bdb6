"""`python -m tests.reproducible`: which entries of the operator database keep the levels, written to `held.json`.

The survey stops after some minutes, keeps what it found in a file and continues there when it is called again.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from .operators import CHECKS, chosen

HELD = Path(__file__).with_name("held.json")
PROGRESS = Path(tempfile.gettempdir()) / "flambeau-reproducible.json"


def main() -> None:
    """Survey for some time, print what was found so far, and write `held.json` if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="a pattern of names of entries; nothing is kept")
    parser.add_argument("--seconds", type=float, default=150.0, help="stop after so many, to be continued")
    parser.add_argument("--restart", action="store_true", help="forget what earlier calls found")
    parser.add_argument("--update", action="store_true", help="write held.json of what is known so far")
    options = parser.parse_args()
    kept = options.only == "*"
    found: dict[str, dict[str, str | None]] = {level: {} for level in CHECKS}
    if kept and PROGRESS.exists() and not options.restart:
        found |= json.loads(PROGRESS.read_text(encoding="utf-8"))
    entries = [each for each in chosen() if fnmatch.fnmatch(each.name, options.only)]
    end = time.monotonic() + options.seconds
    for entry in entries:
        missing = [level for level in CHECKS if entry.name not in found[level]]
        if missing and time.monotonic() > end:
            break
        for level in missing:
            begin = time.monotonic()
            what = found[level][entry.name] = CHECKS[level](entry)
            taken = time.monotonic() - begin
            if what or taken > 5:
                print(f"{entry.name} at {level}: {what or 'holds'}, {taken:.1f} s", flush=True)
        if kept and missing:
            PROGRESS.write_text(json.dumps(found), encoding="utf-8")
    done = min(sum(each.name in found[level] for each in entries) for level in CHECKS)
    print(f"{done} of {len(entries)} entries")
    table = summary(found)
    for level, row in table.items():
        print(f"{level}: {row['hold']} hold, {len(row['differ'])} differ, {len(row['not run'])} were not run")
    if kept and options.update:
        HELD.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    if kept and done == len(entries):
        PROGRESS.unlink()


def summary(found: dict[str, dict[str, str | None]]) -> dict[str, dict[str, Any]]:
    """For each level how many entries were surveyed and hold, how others differ, and those that nothing is known of.

    At "batch" these are the entries whose first dimension is no batch.
    """
    return {
        level: {
            "surveyed": len(results),
            "hold": sum(what == "" for what in results.values()),
            "differ": {name: what for name, what in sorted(results.items()) if what},
            "not run": sorted(name for name, what in results.items() if what is None),
        }
        for level, results in found.items()
    }


if __name__ == "__main__":
    main()
