"""Train the models of timm and transformers compiled and as they stand: the same bits on the CPU.

    python -m tools.compile_sweep                        all that have no result yet
    python -m tools.compile_sweep --portion 300          for so many seconds; the next call goes on
    python -m tools.compile_sweep --again wrong          those anew whose result was such a one
    python -m tools.compile_sweep timm:resnet --again    these anew
    python -m tools.compile_sweep --table                only print what there is

The environment is the one of `python -m tools.compatibility`, whose models these are.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ..compatibility.environments import ROOT, make

HERE = Path(__file__).parent
MARK = "sweep: "
"""What the lines with results begin with; libraries print too."""
LIBRARIES = ("timm", "transformers")
_OUTCOMES = ("whole", "parts", "missed", "alone", "wrong", "error", "ended")


def program(library: str) -> Path:
    """The file with the models of a library."""
    return HERE.parent / "compatibility" / "quickstarts" / f"{library}.py"


def cases(library: str) -> list[str]:
    """The names of the models that are trained: what generates tokens is not."""
    text = program(library).read_text()
    names = re.findall(r'^    "([^"]+)": \w', text[text.index("\nCASES = {") :], re.MULTILINE)
    return [f"{library}:{name}" for name in names if not name.startswith("generate")]


def swept(python: Path, wanted: list[str], arguments: argparse.Namespace) -> None:
    """Run models one after the other, in a new process where one has ended it, until the time is over."""
    end = time.monotonic() + arguments.portion
    while wanted and time.monotonic() < end:
        library = wanted[0].partition(":")[0]
        names = [each for each in wanted if each.startswith(library + ":")]
        done = _run(python, library, names, min(end, time.monotonic() + 3600) - time.monotonic(), arguments)
        wanted = [each for each in wanted if each not in done]


def _run(python: Path, library: str, names: list[str], limit: float, arguments: argparse.Namespace) -> set[str]:
    """Results of models of one library; those that were begun."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    plain = [each.partition(":")[2] for each in names]
    command = [str(python), "-X", "faulthandler", str(HERE / "child.py"), str(program(library))]
    done: set[str] = set()
    open_case, stopped = "", []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [*command, str(arguments.seconds), MARK, *plain],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        timer = threading.Timer(limit, lambda: (stopped.append(True), child.kill()))
        timer.start()
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(MARK):
                found = json.loads(line.removeprefix(MARK))
                name = f"{library}:{found.pop('case')}"
                done.add(name)
                open_case = name if found.pop("begins", False) else ""
                if found:
                    _append(arguments.results, name, found)
        timer.cancel()
        child.wait()
        errors.seek(0)
        if not done and not stopped:
            sys.exit(f"{library} did not load: {errors.read()[-2000:]}")
        if open_case and not stopped:
            errors.seek(0)
            _append(arguments.results, open_case, {"outcome": "ended", "error": errors.read()[-600:]})
    return done if not stopped else set(names)


def _append(results: Path, name: str, found: dict[str, Any]) -> None:
    with results.open("a") as file:
        file.write(json.dumps({"name": name, **found}) + "\n")
    print(f"{name}: {found['outcome']} {found.get('reasons') or found.get('error') or ''}"[:240], flush=True)


def known(results: Path) -> dict[str, dict[str, Any]]:
    """The last result of each model."""
    lines = results.read_text().splitlines() if results.exists() else []
    return {each["name"]: each for each in map(json.loads, lines)}


def table(found: dict[str, dict[str, Any]]) -> str:
    """Counts by library, what is wrong, and why models are left alone or in parts."""
    lines = []
    for library in LIBRARIES:
        counts = Counter([each["outcome"] for name, each in found.items() if name.startswith(library + ":")])
        told = ", ".join([f"{counts[each]} {each}" for each in _OUTCOMES if counts[each]])
        lines.append(f"{library}: {sum(counts.values())} of {len(cases(library))}: {told}")
    for outcome in _OUTCOMES[2:]:
        for name, each in sorted(found.items()):
            if each["outcome"] == outcome:
                lines.append(f"  {outcome} {name}: {each.get('differ') or each.get('error') or each.get('reasons')}")
    reasons = Counter(
        [_kind(each["reasons"][0]) for each in found.values() if each["outcome"] == "parts" and each["reasons"]]
    )
    lines += [f"  in parts, {count}: {reason}" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _kind(reason: str) -> str:
    """A reason without its place."""
    return re.sub(r" \([^)]*:\d+\)", "", reason)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.compile_sweep", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="libraries, or models as timm:resnet; all if there is none")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "flambeau-compatibility")
    parser.add_argument("--results", type=Path, default=Path("compile_sweep.jsonl"))
    parser.add_argument("--portion", type=float, default=1e6, help="seconds after which to stop")
    parser.add_argument("--seconds", type=float, default=60, help="for one model, at least five steps in any case")
    parser.add_argument("--again", nargs="?", const="all", help="run also what has a result, or has this one")
    parser.add_argument("--table", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    arguments.results = arguments.results.absolute()
    if not arguments.table:
        names = arguments.names or LIBRARIES
        wanted = [each for library in LIBRARIES for each in cases(library) if library in names or each in names]
        had = known(arguments.results)
        if arguments.again not in (None, "all"):
            wanted = [each for each in wanted if had.get(each, {}).get("outcome") == arguments.again]
        elif arguments.again is None:
            wanted = [each for each in wanted if each not in had]
        ours, _ = make(arguments.folder)
        swept(ours.python, wanted, arguments)
    print(table(known(arguments.results)))


if __name__ == "__main__":
    main()
