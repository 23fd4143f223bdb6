"""Run libraries and programs on Flambeau and on PyTorch, compare, and write docs/libraries.md and docs/programs.md.

    python -m tools.compatibility                     all of them
    python -m tools.compatibility timm transformers   some, of the others the last results
    python -m tools.compatibility timm/beit timm/vgg  some cases of one
    python -m tools.compatibility --pages             write the pages again
    python -m tools.compatibility --suites einops     the libraries' own tests, of one or of all

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
from .suites import make_environment, run_suites

RESULTS = HERE / "results.json"
_TIMES = {"quickstarts": 1, "programs": 5}
"""How often a case runs: programs once for the first use of everything, and again; of these runs the quickest counts,
since other work on the machine only ever makes one slower."""


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="quick-starts and programs, or NAME/CASE; all if there is none")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "flambeau-compatibility")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one program in one environment")
    parser.add_argument("--pages", action="store_true", help="run nothing")
    parser.add_argument("--suites", action="store_true", help="run the libraries' own tests")
    parser.add_argument("--python", type=Path, help="with --suites: a Python that has PyTorch and the libraries")
    parser.add_argument("--update", action="store_true", help="with --suites: write suite_gaps.json again")
    arguments = parser.parse_args()
    if arguments.suites:
        python = arguments.python or make_environment(arguments.folder)
        raise SystemExit(run_suites(arguments.names, arguments.folder, python, arguments.limit, arguments.update))
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    asked = _asked(arguments.names)
    if not arguments.pages:
        ours, theirs = make(arguments.folder)
        installed = versions(arguments.folder / "pytorch")
        for kind in ("quickstarts", "programs"):
            for path in sorted((HERE / kind).glob("*.py")):
                if asked and path.stem not in asked:
                    continue
                only = asked.get(path.stem, [])
                times = _TIMES[kind]
                oracle = theirs.run(path, only, arguments.limit, times)
                found = compared(ours.run(path, only, arguments.limit, times), oracle)
                passed = sum(each["passes"] for each in found["cases"].values())
                print(f"{path.stem}: {passed} of {len(found['cases'])}", flush=True)
                if only:  # the other cases as they were found last
                    before = results.get(kind, {}).get(path.stem, {"cases": {}})
                    found["cases"] = before["cases"] | found["cases"]
                package = {"pyro": "pyro_ppl"}.get(path.stem, path.stem)
                results.setdefault(kind, {})[path.stem] = {"version": installed.get(package, ""), **found}
                RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_pages(results)


def _asked(names: list[str]) -> dict[str, list[str]]:
    """name -> its cases; none means all of them."""
    asked: dict[str, list[str]] = {}
    for name in names:
        stem, _, case = name.partition("/")
        asked.setdefault(stem, []).extend([case] if case else [])
    return asked


if __name__ == "__main__":
    main()
