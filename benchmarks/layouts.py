"""Ops on tensors of each layout and dtype, in place and not, at sizes of networks: processor time beside PyTorch.

python benchmarks/layouts.py
python benchmarks/layouts.py --only 'masked_fill_|bfloat16' --quick
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Run

LIMIT = 1.5
"""Ratios above are listed at the end."""
SIZES = {"small": (2, 4, 16, 16), "middle": (4, 16, 28, 28), "large": (8, 64, 28, 28)}
DTYPES = ("float32", "bfloat16", "int64", "bool")
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "sliced": lambda x: x.repeat(1, 1, 1, 2)[..., : x.shape[-1]],
    "every second": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "expanded": lambda x: x[:, :1].expand(x.shape),
}

Case = Callable[[Any, Any, Any], Run]  # of the framework, the tensor, and another one of its sort that is contiguous
CASES: dict[str, tuple[Case, frozenset[str]]] = {}
REAL, NUMBERS, ALL = frozenset(DTYPES[:2]), frozenset(DTYPES[:3]), frozenset(DTYPES)


def enter(name: str, dtypes: frozenset[str], case: Case) -> None:
    """Enter an op; what it prepares is not timed."""
    CASES[name] = case, dtypes


def mask(torch: Any, x: Any) -> Any:
    """A mask of the tensor's shape, and of its own memory."""
    return (torch.arange(x.numel()) % 3 == 0).reshape(x.shape)


def call(name: str, dtypes: frozenset[str], *more: Any) -> None:
    """An op of the tensor and constants."""
    enter(name, dtypes, lambda torch, x, y: lambda: getattr(x, name)(*more))


def function(name: str, *more: Any) -> None:
    """A function of `nn.functional`."""
    enter(name, REAL, lambda torch, x, y: lambda: getattr(torch.nn.functional, name)(x, *more))


def prepared_with(name: str, dtypes: frozenset[str], first: Callable[[Any, Any, Any], Any], run: Any) -> None:
    """A call `run(torch, x, y, first)` with something that is prepared first, such as a mask or positions."""

    def case(torch: Any, x: Any, y: Any) -> Run:
        ready = first(torch, x, y)
        return lambda: run(torch, x, y, ready)

    enter(name, dtypes, case)


def in_place(name: str, argument: Callable[[Any, Any, Any], Any], dtypes: frozenset[str], title: str = "") -> None:
    """A method of the tensor and of one other operand."""

    def case(torch: Any, x: Any, y: Any) -> Run:
        other, method = argument(torch, x, y), getattr(x, name)
        return lambda: method(other)

    enter(title or name, dtypes, case)


for each in ("relu_", "sigmoid_", "tanh_", "exp_", "neg_", "abs_", "sqrt_"):
    call(each, REAL)
for each in ("relu", "exp", "tanh", "abs", "neg", "sigmoid"):
    call(each, REAL)
for each in ("silu", "gelu", "softplus"):
    function(each)
enter("silu, in place", REAL, lambda torch, x, y: lambda: torch.nn.functional.silu(x, inplace=True))
enter("dropout, in place", REAL, lambda torch, x, y: lambda: torch.nn.functional.dropout(x, 0.1, True, True))
call("zero_", ALL)
call("fill_", ALL, 1)
call("clone", ALL)
call("contiguous", ALL)
call("clamp_", NUMBERS, 0, 1)
call("clamp", NUMBERS, 0, 1)
call("mul_", NUMBERS, 1)
call("add_", NUMBERS, 0)
call("pow", REAL, 2)
call("logical_not", ALL)
call("cumsum", NUMBERS, -1)
call("softmax", REAL, -1)
call("flip", ALL, (2,))
call("roll", ALL, 1, 2)
call("repeat", ALL, 1, 2, 1, 1)
call("tril", ALL)
call("argmax", NUMBERS, -1)
call("logsumexp", REAL, -1)
call("unfold", ALL, 2, 2, 2)
for each, dims in itertools.product(("sum", "amax", "any", "mean", "std"), (-1, 1, (2, 3), (0, 2, 3))):
    kinds = {"any": ALL, "sum": ALL, "amax": ALL}.get(each, REAL)
    enter(f"{each} over {dims}", kinds, lambda torch, x, y, each=each, dims=dims: lambda: getattr(x, each)(dims))
for each in ("max", "sort", "topk"):
    more = (3, -1) if each == "topk" else (-1,)
    call(each, NUMBERS, *more)
enter("to float32", ALL, lambda torch, x, y: lambda: x.to(torch.float32))
enter("to bfloat16", ALL, lambda torch, x, y: lambda: x.to(torch.bfloat16))
enter("to int64", ALL, lambda torch, x, y: lambda: x.to(torch.int64))
enter("to bool", ALL, lambda torch, x, y: lambda: x.to(torch.bool))
prepared_with("masked_fill", ALL, lambda torch, x, y: mask(torch, x), lambda torch, x, y, m: x.masked_fill(m, 0))
prepared_with("masked_fill_", ALL, lambda torch, x, y: mask(torch, x), lambda torch, x, y, m: x.masked_fill_(m, 0))
prepared_with(
    "masked_fill_, by rows", ALL, lambda torch, x, y: mask(torch, x[:, :1]), lambda torch, x, y, m: x.masked_fill_(m, 0)
)
prepared_with("x[mask] = 0", ALL, lambda torch, x, y: mask(torch, x), lambda torch, x, y, m: x.__setitem__(m, 0))
prepared_with("x[mask]", ALL, lambda torch, x, y: mask(torch, x), lambda torch, x, y, m: x[m])
prepared_with("where", ALL, lambda torch, x, y: mask(torch, x), lambda torch, x, y, m: torch.where(m, x, y))
in_place("mul_", mask, NUMBERS, "mul_ by a mask")
in_place("mul", mask, NUMBERS, "mul by a mask")
for each in ("mul", "add"):
    for title, other in {
        "the same layout": lambda torch, x, y: x.clone(),
        "a contiguous one": lambda torch, x, y: y,
        "a row": lambda torch, x, y: y[0, 0, 0],
        "channels": lambda torch, x, y: y[:1, :, :1, :1].clone(),
        "a column": lambda torch, x, y: y[..., :1].clone(),
        "float32": lambda torch, x, y: y.to(torch.float32),
    }.items():
        if title != "float32":
            in_place(f"{each}_", other, NUMBERS, f"{each}_ of {title}")
        in_place(each, other, NUMBERS, f"{each} of {title}")
in_place("copy_", lambda torch, x, y: y, ALL)
in_place("eq", lambda torch, x, y: y, ALL)
in_place("logical_and", lambda torch, x, y: y, ALL)
enter("copy to contiguous", ALL, lambda torch, x, y: lambda: y.copy_(x))
enter("y += x", NUMBERS, lambda torch, x, y: lambda: y.add_(x))
enter("x % 3", NUMBERS, lambda torch, x, y: lambda: x % 3)
enter("x // 3", NUMBERS, lambda torch, x, y: lambda: x // 3)
enter("cat, columns", ALL, lambda torch, x, y: lambda: torch.cat([x, y], -1))
enter("cat, rows", ALL, lambda torch, x, y: lambda: torch.cat([x, y], 2))
prepared_with(
    "cat with an empty one", ALL, lambda torch, x, y: y[:0].reshape(-1), lambda torch, x, y, e: torch.cat([e, x])
)
enter("stack, last", ALL, lambda torch, x, y: lambda: torch.stack([x, y], -1))
enter("stack, first", ALL, lambda torch, x, y: lambda: torch.stack([x, y]))
enter("pad", NUMBERS, lambda torch, x, y: lambda: torch.nn.functional.pad(x, (1, 1, 1, 1)))
enter("pixel_shuffle", REAL, lambda torch, x, y: lambda: torch.nn.functional.pixel_shuffle(x, 2))
enter("F.unfold", REAL, lambda torch, x, y: lambda: torch.nn.functional.unfold(x, 2, stride=2))
enter("nonzero", ALL, lambda torch, x, y: lambda: x.nonzero())


def positions(torch: Any, n: int) -> Any:
    """Numbers below `n` in a mixed order."""
    return torch.arange(n) * 5 % n if n % 5 else torch.arange(n - 1, -1, -1)


for dim in (0, 1, 2, 3):
    places = functools.partial(lambda d, torch, x, y: (d, positions(torch, x.shape[d])), dim)
    prepared_with(f"index_select of {dim}", ALL, places, lambda torch, x, y, given: x.index_select(*given))
    prepared_with(f"index_add_ to {dim}", NUMBERS, places, lambda torch, x, y, given: x.index_add_(*given, y))
prepared_with("x[:, i]", ALL, lambda torch, x, y: positions(torch, x.shape[1]), lambda torch, x, y, i: x[:, i])
prepared_with(
    "x[i, j]", ALL, lambda torch, x, y: positions(torch, x.shape[1]), lambda torch, x, y, i: x[i[:, None] % 2, i]
)
prepared_with(
    "x[:, :, i, j]", ALL, lambda torch, x, y: positions(torch, x.shape[2]), lambda torch, x, y, i: x[:, :, i, i]
)
prepared_with(
    "x[:, i] = y",
    ALL,
    lambda torch, x, y: (slice(None), positions(torch, x.shape[1])),
    lambda torch, x, y, i: x.__setitem__(i, y),
)


def everywhere(torch: Any, x: Any, y: Any) -> Any:
    """A position along dimension 2 for each element."""
    return (torch.arange(x.numel()) % x.shape[2]).reshape(x.shape)


prepared_with("gather", ALL, everywhere, lambda torch, x, y, i: x.gather(2, i))
prepared_with("scatter_", ALL, everywhere, lambda torch, x, y, i: x.scatter_(2, i, y))


def operand(torch: Any, size: tuple[int, ...], dtype: str) -> Any:
    """The same numbers for both, small and positive, so that they may be changed again and again."""
    count = 1
    for extent in size:
        count *= extent
    numbers = torch.arange(count).reshape(size) * 7 % 5
    return (numbers.float() / 4).to(getattr(torch, dtype)) if dtype in REAL else numbers.to(getattr(torch, dtype))


def prepared(torch: Any, name: str, size: str, dtype: str, layout: str) -> Run:
    """The call that is timed."""
    x = LAYOUTS[layout](operand(torch, SIZES[size], dtype))
    return CASES[name][0](torch, x, operand(torch, SIZES[size], dtype))


def processor_time(run: Run) -> Callable[[int], float]:
    """Bursts by the time of the process: what else the machine does, does not count."""

    def burst(calls: int) -> float:
        start = time.process_time()
        for _ in itertools.repeat(None, calls):
            run()
        return time.process_time() - start

    return burst


def measure(frameworks: tuple[Any, Any], line: tuple[str, ...], rounds: int) -> tuple[float, float] | str:
    """Microseconds of both, or why there are none."""
    runs = [attempt(torch, line) for torch in frameworks]
    failed = [str(run) for run in runs if isinstance(run, Exception)]
    if failed:
        return "refused" if len(failed) == 2 else f"failed: {failed[0]:.150}"
    ours, theirs = _measure.alternate_bursts([processor_time(run) for run in runs], rounds, 0.0005)
    return ours.best, theirs.best


def attempt(torch: Any, line: tuple[str, ...]) -> Any:
    """The call that is timed, made once, or why it cannot be: both refuse to change overlapping memory in place."""
    try:
        run = prepared(torch, *line)
        run()
    except Exception as error:
        return error
    return run


def summary(rows: dict[tuple[str, ...], tuple[float, float]]) -> None:
    """What is above the limit, and where."""
    for place, word in enumerate(("op", "size", "dtype", "layout")):
        found: dict[str, list[float]] = defaultdict(list)
        for line, (ours, theirs) in rows.items():
            found[line[place]].append(ours / theirs)
        print(f"by {word}: geometric mean, worst")
        for name in sorted(found, key=lambda name: -_measure.geometric_mean(found[name]))[:30]:
            print(f"  {name:<28}{_measure.geometric_mean(found[name]):>8.2f}{max(found[name]):>8.2f}")
    ratios = [ours / theirs for ours, theirs in rows.values()]
    above = sum(ratio > LIMIT for ratio in ratios)
    print(f"geometric mean of {len(ratios)}: {_measure.geometric_mean(ratios):.3f}, {above} above {LIMIT}")


def main() -> int:
    """Measure the chosen lines; 1 if Flambeau could not do one that PyTorch does."""
    parser = _measure.parser("Ops by layout and dtype, Flambeau against PyTorch.", "only lines that match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", default=",".join(SIZES))
    options = parser.parse_args()
    torch, flambeau = _measure.load("torch", options.threads), _measure.load("flambeau", options.threads)
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False), flambeau.set_grad_enabled(False)
    rows: dict[tuple[str, ...], tuple[float, float]] = {}
    failed = 0
    for name, (_, dtypes) in CASES.items():
        for line in itertools.product((name,), options.sizes.split(","), DTYPES, LAYOUTS):
            title = ", ".join(line)
            if line[2] not in dtypes or not options.only.search(title):
                continue
            times = measure((flambeau, torch), line, 5 if options.quick else 15)
            if isinstance(times, tuple):
                rows[line] = times
                print(f"{title:<70}{times[0]:>10.2f}{times[1]:>10.2f}{times[0] / times[1]:>8.2f}", flush=True)
            elif times != "refused":
                failed += 1
                print(f"{title:<70} {times}", flush=True)
    if rows:
        summary(rows)
    content = {", ".join(line): {"flambeau": times[0], "pytorch": times[1]} for line, times in rows.items()}
    _measure.write_json(options.json, {"pytorch": torch.__version__, "lines": content})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
