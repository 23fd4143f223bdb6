"""Run libraries and programs on Flambeau and on PyTorch, compare, and write docs/libraries.md and docs/programs.md.

    python -m tools.compatibility                     all of them
    python -m tools.compatibility timm transformers   some, of the others the last results
    python -m tools.compatibility --pages             write the pages again

The environments, one without PyTorch, are made below --folder at the first run, which downloads the libraries.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .compare import HERE, compared
from .environments import make, versions
from .pages import write_pages

RESULTS = HERE / "results.json"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names of quick-starts and programs; all if there is none")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "flambeau-compatibility")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one program in one environment")
    parser.add_argument("--pages", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not arguments.pages:
        ours, theirs = make(arguments.folder)
        installed = versions(arguments.folder / "pytorch")
        for kind in ("quickstarts", "programs"):
            for path in sorted((HERE / kind).glob("*.py")):
                if arguments.names and path.stem not in arguments.names:
                    continue
                oracle = theirs.run(path, [], arguments.limit)
                found = compared(ours.run(path, [], arguments.limit), oracle)
                package = {"pyro": "pyro_ppl"}.get(path.stem, path.stem)
                results.setdefault(kind, {})[path.stem] = {"version": installed.get(package, ""), **found}
                passed = sum(each["passes"] for each in found["cases"].values())
                print(f"{path.stem}: {passed} of {len(found['cases'])}", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_pages(results)


if __name__ == "__main__":
    main()
