"""`torch.compile`: PyTorch eager and compiled, Flambeau eager and compiled, taking turns; first calls and memory.

python benchmarks/compile.py
python benchmarks/compile.py --only 'MLP|RNN' --quick
python benchmarks/compile.py --first              # what the first calls take, each in a process of its own
python benchmarks/compile.py --page               # also writes its table in docs/compile.md; --first has another
python benchmarks/compile.py --torch-compile      # PyTorch's compiler too: it takes minutes, and needs a C++ compiler
python benchmarks/compile.py --device cuda        # whole training steps on a GPU; with --first their first calls

Ratios are times to PyTorch's eager mode. The goals: at most 0.45 in the geometric mean, 0.9 on each line, 0.15 for tiny
functions; a first call of at most 1.5 s, or 0.1 s where the kernels are on disk.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import _measure
from _compile import on_gpu, page
from _compile.cases import CASES, TINY
from _compile.fresh import run_fresh
from _measure import Run

NOT_AVAILABLE = "not available"


def compiled_by_pytorch(torch: Any, function: Run) -> Run | None:
    """What PyTorch's own compiler makes of a function; None where it cannot."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        return None
    made: Run = torch.compile(function)
    try:
        for _ in range(3):
            made()
    except Exception as error:  # its errors are many
        print(f"PyTorch's compiler: {type(error).__name__}", file=sys.stderr)
        return None
    return made


Rows = dict[str, tuple[str, ...]]
"""Of the page's tables, by the names of cases."""


def compare(names: list[str], quick: bool, with_torch_compile: bool) -> Rows | None:
    """Print how long calls take; None if a compiled function gives something else."""
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")
    rounds, seconds = (5, 0.05) if quick else (15, 0.2)
    headings = ("PyTorch", "compiled", "Flambeau", "compiled", "eager", "compiled")
    print(f"{'microseconds; ratios':24}{''.join([f'{each:>14}' for each in headings])}")
    ratios: dict[str, float] = {}
    rows: Rows = {}
    for name in names:
        runs: list[Run] = []
        for framework in (torch, flambeau, flambeau):
            framework.manual_seed(0)
            runs.append(CASES[name](framework))
        runs[2] = flambeau.compile(runs[2])
        for _ in range(5):
            found = [_measure.plain(run()) for run in runs[1:]]
        if not _measure.same(*found):
            print(f"{name:24} the compiled function differs: {found}")
            return None
        theirs = compiled_by_pytorch(torch, CASES[name](torch)) if with_torch_compile else None
        if theirs is not None:
            runs.append(theirs)
        times = [each.median for each in _measure.alternate(runs, rounds, seconds, collect=True)]
        ratios[name] = times[2] / times[0]
        rows[name] = (*[f"{each:,.{each < 10:d}f}" for each in times[:3]], f"{ratios[name]:.2f}")
        shown = f"{times[3]:14.1f}" if theirs is not None else f"{NOT_AVAILABLE if with_torch_compile else '-':>14}"
        print(
            f"{name:24}{times[0]:14.1f}{shown}{times[1]:14.1f}{times[2]:14.1f}{times[1] / times[0]:14.2f}"
            f"{ratios[name]:14.2f}",
            flush=True,
        )
    _measure.print_summary(ratios, "0.45; 0.9 on each line")
    if tiny := {name: ratio for name, ratio in ratios.items() if name in TINY}:
        print("tiny functions:")
        _measure.print_summary(tiny, "0.15 on each line")
    return rows


def first_calls(names: list[str]) -> Rows:
    """Print the longest of the first calls, without and with kernels on disk, and the memory of these calls.

    Beside them stand which call that was, where kernels were on disk, the longest of plain calls, and the shortest of
    the compiled ones, which is the work itself. Memory is eager / compiled: by how much the process has grown at most,
    and what large arrays took at a time.
    """
    headings = ("no cache, s", "cache, s", "call", "eager, s", "shortest, s")
    print(f"{'':24}{''.join([f'{each:>13}' for each in headings])}{'resident, MB':>18}{'large arrays, MB':>18}")
    rows: Rows = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            without = run_fresh(name, True, Path(folder))
            cached = run_fresh(name, True, Path(folder))
            eager = run_fresh(name, False, Path(folder))
            memory = [run_fresh(name, compiled, Path(folder), True) for compiled in (False, True)]
        resident = " / ".join([f"{each.megabytes:.1f}" for each in memory])
        arrays = " / ".join([f"{each.array_megabytes:.1f}" for each in memory])
        print(
            f"{name:24}{without.seconds:13.2f}{cached.seconds:13.2f}{cached.call:13}{eager.seconds:13.2f}"
            f"{cached.shortest:13.3f}{resident:>18}{arrays:>18}",
            flush=True,
        )
        seconds = without.seconds, cached.seconds, cached.shortest, eager.seconds
        rows[name] = (*[f"{each:.2f}" for each in seconds], resident, arrays)
    return rows


def main() -> int:
    parser = _measure.parser(__doc__ or "", "cases whose names match")
    parser.add_argument("--first", action="store_true", help="measure first calls and memory in place of time")
    parser.add_argument("--torch-compile", action="store_true", help="measure PyTorch's compiler too")
    parser.add_argument("--page", action="store_true", help="write the lines to docs/compile.md")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    if options.device == "cuda" and options.first:
        return on_gpu.first_calls(options.only)
    if options.device == "cuda":
        return on_gpu.compare(options.only, options.quick, options.torch_compile)
    names = [name for name in CASES if options.only.search(name)]
    rows = first_calls(names) if options.first else compare(names, options.quick, options.torch_compile)
    table = "first" if options.first else "times"
    _measure.write_json(options.json, {table: rows})
    if rows and options.page:
        page.write(table, rows)
    return int(rows is None)


if __name__ == "__main__":
    sys.exit(main())
