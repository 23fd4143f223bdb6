"""Microseconds per operation on tiny tensors, Flambeau against PyTorch, alternating in one process.

At this size the arithmetic costs next to nothing: what is measured is everything around it.

    python benchmarks/overhead.py
    python benchmarks/overhead.py --only 'recorded|backward' --json overhead.json
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import _measure
from _measure import Run, Timing

# A case is a function of the module that plays `torch`. It prepares its tensors and returns what is to be timed.
# Unless its name says otherwise: float32, 4x4; `a` and `b` without gradients; `x` a leaf that requires them.
Case = Callable[[Any], Run]
CASES: dict[str, Case] = {}

ROWS = [[0.5 + 0.25 * row + 0.0625 * column for column in range(4)] for row in range(4)]
OTHER_ROWS = [[1.25 - 0.125 * row + 0.25 * column for column in range(4)] for row in range(4)]


def case(name: str) -> Callable[[Case], Case]:
    """Enter a function into the list of cases."""

    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register


def operands(torch: Any) -> tuple[Any, Any]:
    """`a` and `b`."""
    return torch.tensor(ROWS), torch.tensor(OTHER_ROWS)


def leaf(torch: Any) -> Any:
    """`x`."""
    return torch.tensor(ROWS, requires_grad=True)


# Pointwise


@case("a * b")
def multiply(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: a * b


@case("x * b, recorded")
def multiply_recorded(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]
    return lambda: x * b


@case("a + row, broadcast")
def add_broadcast(torch: Any) -> Run:
    a, row = operands(torch)[0], torch.tensor(OTHER_ROWS[0])
    return lambda: a + row


@case("x + row, broadcast, both recorded")
def add_broadcast_recorded(torch: Any) -> Run:
    x, row = leaf(torch), torch.tensor(OTHER_ROWS[0], requires_grad=True)
    return lambda: x + row


@case("a * 2.0")
def multiply_scalar(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a * 2.0


@case("2.0 - x, recorded")
def subtract_from_scalar_recorded(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: 2.0 - x


@case("a + int64, promoted")
def add_promoted(torch: Any) -> Run:
    a, integers = operands(torch)[0], torch.tensor([[1, 2, 3, 4]] * 4)
    return lambda: a + integers


@case("-a")
def negate(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: -a


@case("exp(a)")
def exponential(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: torch.exp(a)


@case("x.exp(), recorded")
def exponential_recorded(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x.exp()


@case("relu(a)")
def rectify(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: torch.relu(a)


@case("a.clamp(min=1.0)")
def clamp(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.clamp(min=1.0)


@case("a.add_(b)")
def add_in_place(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: a.add_(b)


@case("a < b")
def compare(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: a < b


@case("where(mask, a, b)")
def select(torch: Any) -> Run:
    a, b = operands(torch)
    mask = a < b
    return lambda: torch.where(mask, a, b)


# Reductions


@case("a.sum()")
def total(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.sum()


@case("x.sum(), recorded")
def total_recorded(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x.sum()


@case("a.mean(dim=1)")
def mean_of_rows(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.mean(dim=1)


@case("a.max(dim=1)")
def maximum_of_rows(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.max(dim=1)


@case("softmax(a, dim=1)")
def softmax(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: torch.softmax(a, dim=1)


# Views and indexing


@case("a.view(2, 8)")
def view(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.view(2, 8)


@case("x.reshape(-1), recorded")
def reshape_recorded(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x.reshape(-1)


@case("a.transpose(0, 1)")
def transpose(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.transpose(0, 1)


@case("a[0]")
def index_row(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a[0]


@case("x[0], recorded")
def index_row_recorded(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x[0]


@case("a[1:3]")
def index_slice(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a[1:3]


@case("a[mask]")
def index_mask(torch: Any) -> Run:
    a, b = operands(torch)
    mask = a < b
    return lambda: a[mask]


@case("a[integers]")
def index_integers(torch: Any) -> Run:
    a, integers = operands(torch)[0], torch.tensor([3, 0, 2])
    return lambda: a[integers]


@case("a[1] = row")
def assign_row(torch: Any) -> Run:
    a, row = operands(torch)[0], torch.tensor(OTHER_ROWS[0])

    def run() -> object:
        a[1] = row
        return a

    return run


@case("a.detach()")
def detach(torch: Any) -> Run:
    a, _ = operands(torch)
    return lambda: a.detach()


# Products and joins


@case("a @ b")
def matrix_product(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: a @ b


@case("x @ b, recorded")
def matrix_product_recorded(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]
    return lambda: x @ b


@case("cat([a, b])")
def concatenate(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: torch.cat([a, b])


# Making and reading tensors


@case("zeros(4, 4)")
def zeros(torch: Any) -> Run:
    return lambda: torch.zeros(4, 4)


@case("tensor([1.0, 2.0])")
def tensor_of_list(torch: Any) -> Run:
    return lambda: torch.tensor([1.0, 2.0])


@case("one element: item()")
def item(torch: Any) -> Run:
    value = torch.tensor(2.5)
    return lambda: value.item()


@case("x.shape")
def read_shape(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x.shape


@case("x.dtype")
def read_dtype(torch: Any) -> Run:
    x = leaf(torch)
    return lambda: x.dtype


# Modes: entering and leaving is part of what is timed


@case("no_grad: x * b")
def multiply_no_grad(torch: Any) -> Run:
    return one_product_inside(torch, torch.no_grad)


@case("no_grad: ten times x * b")
def ten_multiply_no_grad(torch: Any) -> Run:
    return ten_products_inside(torch, torch.no_grad)


@case("inference_mode: x * b")
def multiply_inference_mode(torch: Any) -> Run:
    return one_product_inside(torch, torch.inference_mode)


@case("inference_mode: ten times x * b")
def ten_multiply_inference_mode(torch: Any) -> Run:
    return ten_products_inside(torch, torch.inference_mode)


def one_product_inside(torch: Any, mode: Callable[[], Any]) -> Run:
    """Enter `mode`, multiply once, leave."""
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        with mode():
            return x * b

    return run


def ten_products_inside(torch: Any, mode: Callable[[], Any]) -> Run:
    """Enter `mode`, multiply ten times, leave."""
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        product = x
        with mode():
            for _ in range(10):
                product = x * b
        return product

    return run


# Graphs


def chain_of_twenty(x: Any, b: Any) -> Any:
    """Ten products and ten sums."""
    y = x
    for _ in range(10):
        y = y * b + x
    return y


@case("20-op chain, not recorded")
def chain(torch: Any) -> Run:
    a, b = operands(torch)
    return lambda: chain_of_twenty(a, b)


@case("20-op chain, recorded")
def chain_recorded(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]
    return lambda: chain_of_twenty(x, b)


@case("20-op chain, sum, backward")
def chain_backward(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        x.grad = None
        chain_of_twenty(x, b).sum().backward()
        return x.grad

    return run


@case("x * b, sum, backward")
def shortest_backward(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        x.grad = None
        (x * b).sum().backward()
        return x.grad

    return run


@case("two backwards into one x.grad")
def accumulate_twice(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        x.grad = None
        (x * b).sum().backward()
        (x * b).sum().backward()
        return x.grad

    return run


@case("wide: 50 uses of x added up, backward")
def wide_added(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        x.grad = None
        result = x * b
        for _ in range(49):
            result = result + x * b
        result.sum().backward()
        return x.grad

    return run


@case("wide: 50 uses of x stacked, sum, backward")
def wide_stacked(torch: Any) -> Run:
    x, b = leaf(torch), operands(torch)[1]

    def run() -> object:
        x.grad = None
        torch.stack([x * b for _ in range(50)]).sum().backward()
        return x.grad

    return run


@case("deep: 200 products in a chain, sum, backward")
def deep(torch: Any) -> Run:
    x, one = leaf(torch), torch.tensor([[1.0] * 4] * 4)  # ones: no power of them overflows or vanishes

    def run() -> object:
        x.grad = None
        y = x
        for _ in range(200):
            y = y * one
        y.sum().backward()
        return x.grad

    return run


@dataclass(frozen=True)
class Row:
    """What became of one case; the timings are there when its status is "measured"."""

    name: str
    status: str
    flambeau: Timing | None = None
    pytorch: Timing | None = None

    @property
    def ratio(self) -> float | None:
        """Flambeau's time over PyTorch's, middle bursts."""
        return self.flambeau.median / self.pytorch.median if self.flambeau and self.pytorch else None


def measure(name: str, flambeau: Any, torch: Any, rounds: int, seconds: float, collect: bool) -> Row:
    """Check that both give the same result, then time them in turns."""
    run_torch = CASES[name](torch)
    expected = _measure.plain(run_torch())
    try:
        run_flambeau = CASES[name](flambeau)
        actual = _measure.plain(run_flambeau())
    except (AttributeError, NotImplementedError) as error:
        return Row(name, f"missing ({error})")
    except Exception as error:  # whatever goes wrong in one case, the others are still measured
        return Row(name, f"failed ({type(error).__name__}: {error})")
    if not _measure.same(actual, expected):
        return Row(name, f"differs (Flambeau: {actual}, PyTorch: {expected})")
    timings = _measure.alternate([run_flambeau, run_torch], rounds, seconds, collect)
    return Row(name, "measured", *timings)


def print_row(row: Row) -> None:
    """One line of the table."""
    if row.flambeau is None or row.pytorch is None:
        print(f"{row.name:<46}{row.status.splitlines()[0]:.100}", flush=True)
        return
    print(f"{row.name:<46}{row.flambeau.median:>12.3f}{row.pytorch.median:>12.3f}{row.ratio:>9.3f}", flush=True)


def main() -> int:
    """Measure the chosen cases; 1 if Flambeau could not do one of them."""
    parser = _measure.parser("Overhead per operation, Flambeau against PyTorch.", "only cases whose name matches")
    parser.add_argument("--gc", action="store_true", help="leave Python's cycle collector on while timing")
    options = parser.parse_args()
    rounds, seconds = (10, 0.001) if options.quick else (60, 0.002)
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")

    print(f"PyTorch {torch.__version__}, one thread, cycle collector {'on' if options.gc else 'off'}")
    print(f"{'case':<46}{'Flambeau us':>12}{'PyTorch us':>12}{'ratio':>9}")
    rows = []
    for name in filter(options.only.search, CASES):
        rows.append(measure(name, flambeau, torch, rounds, seconds, options.gc))
        print_row(rows[-1])

    ratios = {row.name: row.ratio for row in rows if row.ratio is not None}
    _measure.print_summary(ratios, goal="geometric mean at most 0.9, no ratio above 1.5")
    unmeasured = [row.name for row in rows if row.status != "measured"]
    if unmeasured:
        print(f"not measured: {len(unmeasured)} of {len(rows)} cases")
    cases = [{**asdict(row), "ratio": row.ratio} for row in rows]
    mean = _measure.geometric_mean(ratios.values()) if ratios else None
    _measure.write_json(options.json, {"pytorch": torch.__version__, "geometric_mean": mean, "cases": cases})
    return 1 if unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())
