"""Calls as programs make them, at sizes as programs have them, Flambeau against PyTorch in turns; the worst last.

python benchmarks/typical.py
python benchmarks/typical.py --only 'lstsq|inv' --json typical.json
"""

from __future__ import annotations

import sys
import warnings
from time import perf_counter
from typing import Any

import _measure
from _typical import algebra, layers, tensors  # noqa: F401  they enter their cases
from _typical.cases import CASES
from ops import agree

LIMIT = 1.5
"""Ratios above are marked."""


def same(ours: Any, theirs: Any) -> bool:
    """Whether two results agree, up to rounding and to the order of equal elements."""
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if not hasattr(theirs, "is_floating_point"):
        return isinstance(theirs, (str, float)) or ours == theirs
    if theirs.is_complex():
        return same(ours.abs(), theirs.abs())
    return tuple(ours.shape) == tuple(theirs.shape) and agree(ours, theirs)


def quickest(runs: list[_measure.Run], seconds: float) -> list[float]:
    """Milliseconds of the quickest call of each, of at least three, taken in turns for so many seconds."""
    best = [float("inf")] * len(runs)
    start = perf_counter()
    rounds = 0
    while rounds < 3 or perf_counter() - start < seconds:
        for place, run in enumerate(runs):
            best[place] = min(best[place], _measure.burst(run, 1))
        rounds += 1
    return [each * 1e3 for each in best]


def measure(name: str, frameworks: tuple[Any, Any], seconds: float) -> dict[str, Any]:
    """Check that both give the same result, then time them in turns."""
    try:
        runs = [CASES[name](each) for each in frameworks]
        if not same(runs[0](), runs[1]()):
            return {"name": name, "status": "differs"}
    except Exception as error:  # whatever goes wrong in one case, the others are still measured
        return {"name": name, "status": f"failed ({type(error).__name__}: {error})"}
    with _measure.garbage_collector(False):
        flambeau, pytorch = quickest(runs, seconds)
    return {"name": name, "status": "measured", "flambeau": flambeau, "pytorch": pytorch, "ratio": flambeau / pytorch}


def print_row(row: dict[str, Any]) -> None:
    """One line of the table."""
    if row["status"] != "measured":
        print(f"  {row['name']:<36} {row['status'].splitlines()[0]:.100}", flush=True)
        return
    mark = "*" if row["ratio"] > LIMIT else " "
    print(f"{mark} {row['name']:<36}{row['flambeau']:>12.3f}{row['pytorch']:>12.3f}{row['ratio']:>9.2f}", flush=True)


def main() -> int:
    """Measure the chosen cases; 1 if Flambeau could not do one of them."""
    parser = _measure.parser("Typical calls, Flambeau against PyTorch.", "only calls whose name matches")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch, flambeau = _measure.load("torch", options.threads), _measure.load("flambeau", options.threads)
    warnings.simplefilter("ignore")  # about arguments that both frameworks warn of
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s), quickest calls")
    print(f"  {'call':<36}{'Flambeau ms':>12}{'PyTorch ms':>12}{'ratio':>9}")
    rows = []
    for name in filter(options.only.search, CASES):
        rows.append(measure(name, (flambeau, torch), 0.2 if options.quick else 1.0))
        print_row(rows[-1])
    measured = sorted((row for row in rows if row["status"] == "measured"), key=lambda row: row["ratio"])
    above = [row for row in measured if row["ratio"] > LIMIT]
    print(f"above {LIMIT:g}: {len(above)} of {len(rows)}")
    for row in above:
        print_row(row)
    _measure.print_summary({row["name"]: row["ratio"] for row in measured})
    _measure.write_json(options.json, {"pytorch": torch.__version__, "cases": rows})
    return 0 if len(measured) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
