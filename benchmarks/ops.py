"""Single ops at 10, 10,000 and 1,000,000 elements, forward and backward, Flambeau against PyTorch in turns.

python benchmarks/ops.py
python benchmarks/ops.py --only 'median|kthvalue' --sizes 1000000 --json ops.json
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import _measure
from _measure import Run, Timing
from _ops import layers, pointwise, reductions, shapes  # noqa: F401  they enter their cases
from _ops.cases import OPS, Inputs

SIZES = (10, 10_000, 1_000_000)
LIMIT = 2.0
"""Ratios above are listed at the end."""
SECONDS_EACH = 0.5
"""So long a line is measured at most: of a million elements some take half a second for one call."""


@dataclass(frozen=True)
class Row:
    """What became of one op at one size; the timings are there when its status is "measured"."""

    name: str
    size: int
    direction: str
    status: str
    flambeau: Timing | None = None
    pytorch: Timing | None = None

    @property
    def ratio(self) -> float | None:
        """Flambeau's time over PyTorch's, quickest bursts: whatever else the machine does falls on neither."""
        return self.flambeau.best / self.pytorch.best if self.flambeau and self.pytorch else None

    @property
    def title(self) -> str:
        return f"{self.name}{', backward' if self.direction == 'backward' else ''}"


def prepared(name: str, torch: Any, size: int, direction: str) -> Run:
    """The call to be timed, alone or as the gradients of its result by its inputs."""
    inputs = Inputs(torch, size, direction == "backward")
    call = OPS[name].make(inputs)
    if direction == "forward":
        return call
    result = call()
    if isinstance(result, tuple):
        result = result[0]
    ones = torch.ones_like(result)
    return lambda: torch.autograd.grad(result, inputs.leaves, ones, retain_graph=True)


def agree(ours: Any, theirs: Any) -> bool:
    """Whether two results are the same up to rounding; which of several equal elements was chosen does not count."""
    if isinstance(theirs, (tuple, list)):
        chosen = 1 if hasattr(theirs, "indices") else len(theirs)
        return all(map(agree, ours[:chosen], theirs[:chosen]))
    if theirs.is_floating_point():
        ours, theirs = ours.detach().double().numpy(), theirs.detach().double().numpy()
        scale = max(1e-3, abs(theirs[abs(theirs) < float("inf")]).max(initial=0))
        finite = abs(theirs) < float("inf")
        return bool((abs(ours - theirs)[finite] <= 2e-3 * scale).mean() > 0.999 if finite.any() else True)
    return bool((ours.numpy() == theirs.numpy()).mean() > 0.99)  # equal ones may be in another order


def measure(name: str, size: int, direction: str, frameworks: tuple[Any, Any], rounds: int, seconds: float) -> Row:
    """Check that both give the same result, then time them in turns."""
    try:
        runs = [prepared(name, each, size, direction) for each in frameworks]
        if not agree(runs[0](), runs[1]()):
            return Row(name, size, direction, "differs")
    except Exception as error:  # whatever goes wrong in one case, the others are still measured
        return Row(name, size, direction, f"failed ({type(error).__name__}: {error})")
    timings = _measure.alternate(runs, rounds, seconds, collect=False, limit=SECONDS_EACH)
    return Row(name, size, direction, "measured", *timings)


def print_row(row: Row) -> None:
    """One line of the table."""
    start = f"{row.title:<42}{row.size:>9}"
    if row.flambeau is None or row.pytorch is None:
        print(f"{start}  {row.status.splitlines()[0]:.100}", flush=True)
        return
    print(f"{start}{row.flambeau.best:>13.2f}{row.pytorch.best:>13.2f}{row.ratio:>9.2f}", flush=True)


def print_summary(rows: list[Row]) -> dict[str, float]:
    """The geometric means by size and direction, and the ops that are above the limit."""
    means: dict[str, float] = {}
    for size in sorted({row.size for row in rows}):
        for direction in ("forward", "backward"):
            ratios = [row.ratio for row in rows if row.ratio and (row.size, row.direction) == (size, direction)]
            if ratios:
                means[f"{size}, {direction}"] = mean = _measure.geometric_mean(ratios)
                print(f"geometric mean of {len(ratios)} ratios at {size}, {direction}: {mean:.3f}")
    above = sorted((row for row in rows if row.ratio and row.ratio > LIMIT), key=lambda row: -(row.ratio or 0))
    print(f"above {LIMIT:g}: {len(above)} of {len(rows)}")
    for row in above:
        print(f"  {row.title} at {row.size}: {row.ratio:.2f}")
    return means


def main() -> int:
    """Measure the chosen cases; 1 if Flambeau could not do one of them."""
    parser = _measure.parser("Single ops, Flambeau against PyTorch.", "only ops whose name matches")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of elements, of 10,10000,1000000")
    parser.add_argument("--directions", default="forward,backward", help="forward, backward or both")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    # Many short bursts: on a machine that others use too, or whose speed changes, some of each are undisturbed.
    rounds, seconds = (31, 0.0005) if options.quick else (51, 0.001)
    torch, flambeau = _measure.load("torch", options.threads), _measure.load("flambeau", options.threads)
    warnings.simplefilter("ignore")  # about arguments that both frameworks warn of
    print(f"PyTorch {torch.__version__}, float32, {options.threads} thread(s)")
    print(f"{'op':<42}{'elements':>9}{'Flambeau us':>13}{'PyTorch us':>13}{'ratio':>9}")
    rows = []
    for name in filter(options.only.search, OPS):
        for direction in options.directions.split(","):
            if direction == "backward" and not OPS[name].differentiable:
                continue
            for size in map(int, options.sizes.split(",")):
                rows.append(measure(name, size, direction, (flambeau, torch), rounds, seconds))
                print_row(rows[-1])
    means = print_summary(rows)
    unmeasured = [row for row in rows if row.status != "measured"]
    if unmeasured:
        print(f"not measured: {len(unmeasured)} of {len(rows)} cases")
    cases = [{**asdict(row), "ratio": row.ratio} for row in rows]
    _measure.write_json(options.json, {"pytorch": torch.__version__, "geometric_means": means, "cases": cases})
    return 1 if unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())
