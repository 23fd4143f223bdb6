"""`python -m tests.reference` counts what docstrings lack; `--update` takes what is done from the lists."""

from __future__ import annotations

import json
import sys

from .census import GAPS, entries, lacking, listed

now = lacking()
total = len(list(entries()))
for kind, names in now.items():
    print(f"{kind}: {total - len(names)} of {total} have it, {len(names)} lack it")
if "--update" in sys.argv:
    known = listed()
    kept = {kind: [name for name in names if name in known[kind]] for kind, names in now.items()}
    GAPS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
else:
    shown = [f"{kind}: {name}" for kind, names in now.items() for name in names]
    print(*[line for line in shown if any(each in line for each in sys.argv[1:])], sep="\n")
