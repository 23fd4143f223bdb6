"""`python -m tests.reproducible`: run the operator database with several numbers of threads, and write the table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .operators import survey

HELD = Path(__file__).with_name("held.json")


def main() -> None:
    """Print what does not hold; with --update, write `held.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="a pattern of names of entries")
    parser.add_argument("--update", action="store_true", help="write held.json")
    options = parser.parse_args()
    found = survey(options.only)
    if options.update:
        HELD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for level, entries in found.items():
        print(f"{level}: {entries['entries that hold']} hold, {len(entries) - 1} do not")


if __name__ == "__main__":
    main()
