"""How far long sums are from exact ones, in Flambeau and in PyTorch: writes docs/accumulation.md.

    python tools/accumulation_table.py                  # the page: ten million elements, some minutes
    python tools/accumulation_table.py sum mean         # some cases, printed only
    python tools/accumulation_table.py --size 200000    # smaller ones, printed only

Every case reduces many numbers to few. It runs in both libraries on the same numbers of float32, float16 and bfloat16,
and in PyTorch on the same numbers as float64, which counts as exact.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import flambeau
from flambeau._core.process.processor import ON_X86_64

FILE = Path(__file__).resolve().parents[1] / "docs" / "accumulation.md"
SIZE = 10_000_000
DTYPES = ("float32", "float16", "bfloat16")
LIBRARIES = {"flambeau": flambeau, "PyTorch": torch}
FACTOR = 2.0
"""How many times PyTorch's error Flambeau's may be..."""
ENOUGH = 1.0
"""...unless it is at most this many units: a rightly rounded result has at most half a unit."""

EXCEPTIONS: dict[tuple[str, str], str] = (
    {("conv1d, gradient of weight", "float32"): "oneDNN adds up the positions of an image one by one"}
    if ON_X86_64
    else {}
)
"""Cases and dtypes in which Flambeau's error is larger than that, with the reason. Entries may only go."""

Array = np.ndarray[Any, Any]
Run = Callable[[Any, Any, Any], Any]
"""From a library and two tensors with as many elements each to a tensor."""


@dataclass(frozen=True)
class Case:
    run: Run
    numbers: str = "positive"
    share: float = 1.0
    """Which part of the elements it gets: some need much memory or time."""


CASES: dict[str, Case] = {}


def cases(numbers: str, share: float = 1.0, **runs: Run) -> None:
    for name, run in runs.items():
        CASES[name] = Case(run, numbers, share)


def wide(x: Any, rows: int = 20) -> Any:
    """Few long rows."""
    return x.reshape(rows, -1)


def tall(x: Any, columns: int = 20) -> Any:
    """Few long columns."""
    return x.reshape(-1, columns)


def places(T: Any, x: Any, count: int = 50) -> Any:
    """For each element one of a few places."""
    return T.arange(x.numel()) * 7919 % count


def gradient(T: Any, run: Callable[[Any], Any], at: Any) -> Any:
    at = at.detach().clone().requires_grad_()
    result = run(at)
    (found,) = T.autograd.grad(result, at, T.ones_like(result))
    return found


# Sums and what is made of them, along dimensions in every layout.
for _name in ("sum", "mean", "nansum", "nanmean", "logsumexp", "std", "var"):
    cases(
        "positive",
        **{
            _name: lambda T, x, y, op=_name: getattr(T, op)(x, 0),
            f"{_name}, rows": lambda T, x, y, op=_name: getattr(T, op)(wide(x), 1),
            f"{_name}, columns": lambda T, x, y, op=_name: getattr(T, op)(tall(x), 0),
            f"{_name}, transposed rows": lambda T, x, y, op=_name: getattr(T, op)(tall(x).T, 1),
            f"{_name}, every third": lambda T, x, y, op=_name: getattr(T, op)(x[::3], 0),
            f"{_name}, two dimensions": lambda T, x, y, op=_name: getattr(T, op)(
                x.reshape(50, 20, -1).permute(1, 0, 2), (1, 2)
            ),
        },
    )
cases(
    "positive",
    **{
        "var_mean": lambda T, x, y: T.var_mean(x)[0],
        "std_mean, columns": lambda T, x, y: T.std_mean(tall(x), 0)[0],
        "trapezoid": lambda T, x, y: T.trapezoid(x),
        "cumsum": lambda T, x, y: x.cumsum(0),
        "cumsum, columns": lambda T, x, y: tall(x).cumsum(0),
        "logcumsumexp": lambda T, x, y: x.logcumsumexp(0),
        "cumulative_trapezoid": lambda T, x, y: T.cumulative_trapezoid(x),
        "cov": lambda T, x, y: T.cov(wide(x)),
        "corrcoef": lambda T, x, y: T.corrcoef(wide(x)),
    },
)
cases(
    "large mean",
    **{
        "var, large mean": lambda T, x, y: x.var(),
        "var, large mean, rows": lambda T, x, y: wide(x).var(1),
        "var, large mean, columns": lambda T, x, y: tall(x).var(0),
        "std, large mean": lambda T, x, y: x.std(),
    },
)
cases(
    "near one",
    **{
        "prod": lambda T, x, y: x.prod(),
        "prod, rows": lambda T, x, y: wide(x).prod(1),
        "prod, columns": lambda T, x, y: tall(x).prod(0),
        "cumprod": lambda T, x, y: x.cumprod(0),
    },
)
for _p in (0.5, 1, 2, 3, float("inf")):
    cases(
        "noise",
        **{
            f"norm, p={_p:g}": lambda T, x, y, p=_p: T.linalg.vector_norm(x, p),
            f"norm, p={_p:g}, rows": lambda T, x, y, p=_p: wide(x).norm(p, 1),
            f"norm, p={_p:g}, columns": lambda T, x, y, p=_p: tall(x).norm(p, 0),
            f"dist, p={_p:g}": lambda T, x, y, p=_p: T.dist(x, y, p),
        },
    )
cases(
    "noise",
    **{
        "matrix norm": lambda T, x, y: T.linalg.matrix_norm(wide(x)),
        "normalize": lambda T, x, y: T.nn.functional.normalize(wide(x), dim=1),
        "renorm": lambda T, x, y: wide(x).renorm(2, 0, 1.0),
        "pairwise_distance": lambda T, x, y: T.nn.functional.pairwise_distance(wide(x), wide(y)),
        "cdist": lambda T, x, y: T.cdist(wide(x), wide(y)),
        "cosine_similarity": lambda T, x, y: T.nn.functional.cosine_similarity(wide(x), wide(x) + wide(y)),
        "clip_grad_norm_": lambda T, x, y: _clipped(T, x),
        "_foreach_norm": lambda T, x, y: T._foreach_norm([x, y])[0],
    },
)


def _clipped(T: Any, x: Any) -> Any:
    parameter = T.nn.Parameter(T.zeros_like(x))
    parameter.grad = x.clone()
    return T.nn.utils.clip_grad_norm_([parameter], 1.0)


# Products.
cases(
    "positive",
    **{
        "dot": lambda T, x, y: x.dot(y),
        "vdot": lambda T, x, y: T.vdot(x, y),
        "mv": lambda T, x, y: wide(x).mv(y[: x.numel() // 20]),
        "mm": lambda T, x, y: wide(x) @ wide(y).T,
        "mm, transposed": lambda T, x, y: tall(x).T @ tall(y),
        "bmm": lambda T, x, y: T.bmm(x.reshape(2, 10, -1), y.reshape(2, 10, -1).transpose(1, 2)),
        "einsum": lambda T, x, y: T.einsum("ij,ij->i", wide(x), wide(y)),
        "linear": lambda T, x, y: T.nn.functional.linear(wide(x), wide(y)),
        "tensordot": lambda T, x, y: T.tensordot(wide(x), wide(y), ([1], [1])),
        "inner": lambda T, x, y: T.inner(wide(x), wide(y)),
    },
)

# Probabilities.
cases(
    "noise",
    **{
        "softmax": lambda T, x, y: wide(x).softmax(1),
        "softmax, columns": lambda T, x, y: tall(x).softmax(0),
        "log_softmax": lambda T, x, y: wide(x).log_softmax(1),
        "log_softmax, columns": lambda T, x, y: tall(x).log_softmax(0),
        "gradient of softmax": lambda T, x, y: gradient(T, lambda at: at.softmax(1).pow(2), wide(x)),
        "gradient of log_softmax": lambda T, x, y: gradient(T, lambda at: at.log_softmax(1).exp(), wide(x)),
    },
)

# Losses.
_LOSSES: dict[str, Run] = {
    "mse_loss": lambda F, x, y: F.mse_loss(x, y),
    "l1_loss": lambda F, x, y: F.l1_loss(x, y),
    "smooth_l1_loss": lambda F, x, y: F.smooth_l1_loss(x, y),
    "huber_loss": lambda F, x, y: F.huber_loss(x, y),
    "soft_margin_loss": lambda F, x, y: F.soft_margin_loss(x, y.sign()),
    "hinge_embedding_loss": lambda F, x, y: F.hinge_embedding_loss(x, y.sign()),
    "margin_ranking_loss": lambda F, x, y: F.margin_ranking_loss(x, y, y.sign()),
    "binary_cross_entropy_with_logits": lambda F, x, y: F.binary_cross_entropy_with_logits(x, (y > 0).to(x.dtype)),
    "binary_cross_entropy": lambda F, x, y: F.binary_cross_entropy(x.sigmoid(), (y > 0).to(x.dtype)),
    "poisson_nll_loss": lambda F, x, y: F.poisson_nll_loss(x, y.abs()),
    "gaussian_nll_loss": lambda F, x, y: F.gaussian_nll_loss(x, y, y.abs() + 1),
    "kl_div": lambda F, x, y: F.kl_div(wide(x).log_softmax(1), wide(y).softmax(1), reduction="batchmean"),
    "cosine_embedding_loss": lambda F, x, y: F.cosine_embedding_loss(tall(x), tall(y), tall(y)[:, 0].sign()),
    "triplet_margin_loss": lambda F, x, y: F.triplet_margin_loss(tall(x), tall(y), tall(y).flip(1)),
    "multilabel_soft_margin_loss": lambda F, x, y: F.multilabel_soft_margin_loss(tall(x), (tall(y) > 0).to(x.dtype)),
}
for _name, _loss in _LOSSES.items():
    cases("noise", **{_name: lambda T, x, y, loss=_loss: loss(T.nn.functional, x, y)})
    if _name in ("mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "kl_div"):
        cases(
            "noise",
            **{
                f"{_name}, sum": lambda T, x, y, name=_name: {
                    "kl_div": lambda F: F.kl_div(x.sigmoid().log(), y.sigmoid(), reduction="sum"),
                }.get(name, lambda F: getattr(F, name)(x, y.sigmoid(), reduction="sum"))(T.nn.functional)
            },
        )
cases(
    "noise",
    **{
        "cross_entropy": lambda T, x, y: T.nn.functional.cross_entropy(tall(x), places(T, tall(x)[:, 0], 20)),
        "cross_entropy, weights": lambda T, x, y: T.nn.functional.cross_entropy(
            tall(x), places(T, tall(x)[:, 0], 20), weight=tall(y)[0].abs()
        ),
        "cross_entropy, probabilities": lambda T, x, y: T.nn.functional.cross_entropy(tall(x), tall(y).softmax(1)),
        "cross_entropy, many classes": lambda T, x, y: T.nn.functional.cross_entropy(wide(x), T.arange(20)),
        "nll_loss": lambda T, x, y: T.nn.functional.nll_loss(
            tall(x).log_softmax(1), places(T, tall(x)[:, 0], 20), weight=tall(y)[0].abs()
        ),
        "multi_margin_loss": lambda T, x, y: T.nn.functional.multi_margin_loss(tall(x), places(T, tall(x)[:, 0], 20)),
    },
)

# Normalisations: results, running statistics, gradients of weights.


def _running(T: Any, x: Any, which: int) -> Any:
    images = x.reshape(10, 20, -1)
    statistics = [T.zeros(20, dtype=x.dtype), T.ones(20, dtype=x.dtype)]
    normal = T.nn.functional.batch_norm(images, *statistics, training=True, momentum=0.5)
    return normal if which == 2 else statistics[which]


cases(
    "positive",
    **{
        "batch_norm, running_mean": lambda T, x, y: _running(T, x, 0),
        "batch_norm, running_var": lambda T, x, y: _running(T, x, 1),
        "batch_norm": lambda T, x, y: _running(T, x, 2),
        "instance_norm": lambda T, x, y: T.nn.functional.instance_norm(x.reshape(1, 20, -1)),
        "group_norm": lambda T, x, y: T.nn.functional.group_norm(x.reshape(2, 20, -1), 4),
        "layer_norm": lambda T, x, y: T.nn.functional.layer_norm(wide(x), wide(x).shape[1:]),
        "rms_norm": lambda T, x, y: T.nn.functional.rms_norm(wide(x), wide(x).shape[1:]),
        "local_response_norm": lambda T, x, y: T.nn.functional.local_response_norm(x.reshape(1, 20, -1), 5),
    },
)
for _which, _part in ((0, "weight"), (1, "bias")):

    def _norm_gradient(T: Any, x: Any, y: Any, name: str, which: int) -> Any:
        F = T.nn.functional
        parts = [T.ones(20, dtype=x.dtype), T.zeros(20, dtype=x.dtype)]
        if name == "layer_norm":
            of = tall(x)
            upper = tall(y)
            run = lambda weight, bias: F.layer_norm(of, (20,), weight, bias)  # noqa: E731
        else:
            of, upper = x.reshape(10, 20, -1), y.reshape(10, 20, -1)
            if name == "batch_norm":
                run = lambda weight, bias: F.batch_norm(of, None, None, weight, bias, True)  # noqa: E731
            else:
                run = lambda weight, bias: F.group_norm(of, 4, weight, bias)  # noqa: E731
        parts[which].requires_grad_()
        return T.autograd.grad(run(*parts), parts[which], upper)[0]

    for _name in ("layer_norm", "batch_norm", "group_norm"):
        cases(
            "positive",
            **{
                f"{_name}, gradient of {_part}": lambda T, x, y, name=_name, which=_which: _norm_gradient(
                    T, x, y, name, which
                )
            },
        )

# Gradients that sum up what was broadcast, and those of products.
cases(
    "positive",
    **{
        "gradient of a broadcast scalar": lambda T, x, y: gradient(T, lambda at: at * x, x[0]),
        "gradient of a broadcast row": lambda T, x, y: gradient(T, lambda at: at * tall(x), tall(y)[0]),
        "gradient of a broadcast column": lambda T, x, y: gradient(T, lambda at: at * wide(x), wide(y)[:, :1]),
        "gradient of expand": lambda T, x, y: T.autograd.grad(
            (one := x[:1].detach().clone().requires_grad_()).expand(x.shape), one, x
        )[0],
        "linear, gradient of weight": lambda T, x, y: gradient(
            T, lambda at: T.nn.functional.linear(tall(x), at), tall(y)[:5]
        ),
        "linear, gradient of bias": lambda T, x, y: T.autograd.grad(
            T.nn.functional.linear(
                tall(x)[:, :3], T.ones(20, 3, dtype=x.dtype), b := T.zeros(20, dtype=x.dtype, requires_grad=True)
            ),
            b,
            tall(y),
        )[0],
        "prelu, gradient of weight": lambda T, x, y: gradient(T, lambda at: T.nn.functional.prelu(-wide(x), at), x[:1]),
    },
)
cases(
    "noise",
    0.2,
    **{
        "conv1d, long filter": lambda T, x, y: T.nn.functional.conv1d(
            x.abs().reshape(1, 20, -1), y.abs().reshape(1, 20, -1)
        ),
        "conv1d, gradient of weight": lambda T, x, y: gradient(
            T, lambda at: T.nn.functional.conv1d(x.abs().reshape(1, 20, -1), at), y[:300].reshape(5, 20, 3)
        ),
        "conv2d, gradient of bias": lambda T, x, y: T.autograd.grad(
            T.nn.functional.conv2d(
                x.reshape(4, 1, 50, -1), y[:2].reshape(2, 1, 1, 1), b := T.zeros(2, dtype=x.dtype, requires_grad=True)
            ),
            b,
            x.abs().reshape(4, 1, 50, -1).expand(-1, 2, -1, -1),
        )[0],
    },
)

# Pools and resizing.
cases(
    "positive",
    **{
        "adaptive_avg_pool1d": lambda T, x, y: T.nn.functional.adaptive_avg_pool1d(x.reshape(1, 20, -1), 1),
        "adaptive_avg_pool2d": lambda T, x, y: T.nn.functional.adaptive_avg_pool2d(x.reshape(1, 20, 100, -1), 1),
        "avg_pool1d": lambda T, x, y: T.nn.functional.avg_pool1d(x.reshape(1, 20, -1), x.numel() // 40),
        "avg_pool2d": lambda T, x, y: T.nn.functional.avg_pool2d(x.reshape(1, 20, 100, -1), (100, x.numel() // 4000)),
        "lp_pool1d": lambda T, x, y: T.nn.functional.lp_pool1d(x.reshape(1, 20, -1), 2, x.numel() // 40),
        "interpolate, area": lambda T, x, y: T.nn.functional.interpolate(x.reshape(1, 20, -1), 3, mode="area"),
    },
)

# Sums by place.
cases(
    "positive",
    **{
        "histc": lambda T, x, y: T.histc(x, 30),
        "histogram, weights": lambda T, x, y: T.histogram(x, 30, weight=y)[0],
        "histogram, density": lambda T, x, y: T.histogram(x, 30, density=True)[0],
        "bincount, weights": lambda T, x, y: T.bincount(places(T, x), weights=x),
        "index_add": lambda T, x, y: T.zeros(50, dtype=x.dtype).index_add(0, places(T, x), x),
        "index_add, rows": lambda T, x, y: T.zeros(50, 20, dtype=x.dtype).index_add(
            0, places(T, tall(x)[:, 0]), tall(x)
        ),
        "scatter_add": lambda T, x, y: T.zeros(50, dtype=x.dtype).scatter_add(0, places(T, x), x),
        "scatter_add, rows": lambda T, x, y: T.zeros(50, 20, dtype=x.dtype).scatter_add(
            0, places(T, tall(x)[:, :1]).reshape(-1, 1).expand(-1, 20), tall(x)
        ),
        "scatter_reduce, mean": lambda T, x, y: T.zeros(50, dtype=x.dtype).scatter_reduce(
            0, places(T, x), x, "mean", include_self=False
        ),
        "index_reduce, mean": lambda T, x, y: T.zeros(50, dtype=x.dtype).index_reduce(
            0, places(T, x), x, "mean", include_self=False
        ),
        "index_put, accumulate": lambda T, x, y: T.zeros(50, dtype=x.dtype).index_put(
            (places(T, x),), x, accumulate=True
        ),
        "put, accumulate": lambda T, x, y: T.zeros(50, dtype=x.dtype).put(places(T, x), x, accumulate=True),
        "segment_reduce, sum": lambda T, x, y: T.segment_reduce(
            x, "sum", lengths=T.full((10,), x.numel() // 10), axis=0
        ),
        "segment_reduce, mean": lambda T, x, y: T.segment_reduce(
            x, "mean", lengths=T.full((10,), x.numel() // 10), axis=0
        ),
        "gradient of gather": lambda T, x, y: T.autograd.grad(
            (few := T.zeros(50, dtype=x.dtype, requires_grad=True)).gather(0, places(T, x)), few, x
        )[0],
        "gradient of index": lambda T, x, y: T.autograd.grad(
            (few := T.zeros(50, dtype=x.dtype, requires_grad=True))[places(T, x)], few, x
        )[0],
        "gradient of index_select": lambda T, x, y: T.autograd.grad(
            (few := T.zeros(50, dtype=x.dtype, requires_grad=True)).index_select(0, places(T, x)), few, x
        )[0],
        "embedding, gradient": lambda T, x, y: T.autograd.grad(
            T.nn.functional.embedding(
                places(T, tall(x)[:, 0]), few := T.zeros(50, 20, dtype=x.dtype, requires_grad=True)
            ),
            few,
            tall(x),
        )[0],
        "embedding_bag, sum": lambda T, x, y: T.nn.functional.embedding_bag(
            T.arange(tall(x).shape[0]).reshape(2, -1), tall(x), mode="sum"
        ),
        "embedding_bag, mean": lambda T, x, y: T.nn.functional.embedding_bag(
            T.arange(tall(x).shape[0]).reshape(2, -1), tall(x), mode="mean"
        ),
    },
)


@functools.cache
def numbers(kind: str, size: int, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal(size, np.float32)
    return {
        "positive": lambda: generator.random(size, np.float32) + np.float32(0.05),
        "noise": lambda: noise,
        "near one": lambda: 1 + noise * np.float32(0.2 / np.sqrt(size)),
        "large mean": lambda: 200 + noise * np.float32(5),
    }[kind]()


EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Errors:
    """Errors in units: the distance of neighbouring numbers of the dtype at the largest exact result."""

    ours: float
    theirs: float

    @property
    def too_large(self) -> bool:
        return not self.ours <= max(ENOUGH, FACTOR * self.theirs)


def measured(name: str, dtype: str, size: int = SIZE) -> Errors | None:
    """The errors in a case; None: there is no such function in PyTorch for the dtype, or no finite result."""
    chosen = CASES[name]
    count = max(int(size * chosen.share) // 12_000, 1) * 12_000
    raw = [numbers(chosen.numbers, count, seed) for seed in (1, 2)]
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = [torch.from_numpy(each).to(getattr(torch, dtype)) for each in raw]
        try:
            theirs = chosen.run(torch, *inputs)
        except (RuntimeError, NotImplementedError):
            return None
        exact = chosen.run(torch, *(each.double() for each in inputs)).numpy()
        results["PyTorch"] = theirs.double().numpy()
        ours = [flambeau.from_numpy(each).to(getattr(flambeau, dtype)) for each in raw]
        results["flambeau"] = chosen.run(flambeau, *ours).double().numpy()
    beyond = np.abs(exact).max() > torch.finfo(getattr(torch, dtype)).max
    if beyond or not np.isfinite(results["PyTorch"]).all():
        return None
    unit = EPSILON[dtype] * 2.0 ** np.floor(np.log2(np.abs(exact).max()))
    found = {library: float(np.abs(got - exact).max() / unit) for library, got in results.items()}
    return Errors(found["flambeau"], found["PyTorch"])


def rows(names: list[str], size: int) -> Iterator[tuple[str, dict[str, Errors | None]]]:
    for name in names:
        yield name, {dtype: measured(name, dtype, size) for dtype in DTYPES}


def shown(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.3g}"


PAGE = """# Accuracy of long sums

Each addition rounds, so a sum of many elements can lose digits. The table shows how far results over ten
million elements (2 million for convolutions) are from the exact ones, in Flambeau and in PyTorch. The unit is
the distance between neighbouring numbers of the dtype at the largest result: a correctly rounded result is off
by at most 0.5. "Exact" is PyTorch's result in float64 for the same numbers.

{summary}

| case | {heads} |
| --- | {lines} |
{table}

A dash means that PyTorch has no such function for the dtype, or that the result, or a sum on the way to it,
exceeds the range of float16. Measured on {machine} on {date}; to measure again, which takes some minutes:

    python tools/accumulation_table.py
"""


def page(found: dict[str, dict[str, Errors | None]]) -> str:
    table = []
    compared = [each for row in found.values() for each in row.values() if each is not None]
    for name, row in found.items():
        cells = []
        for errors in row.values():
            cells += ["-", "-"] if errors is None else [shown(errors.ours), shown(errors.theirs)]
        table.append(f"| {name} | {' | '.join(cells)} |")
    worse = [
        f"{name} ({dtype})" for name, row in found.items() for dtype, each in row.items() if each and each.too_large
    ]
    better = sum(each.ours * FACTOR < each.theirs and each.theirs > ENOUGH for each in compared)
    summary = (
        f"Of {len(compared)} comparisons, {len(compared) - len(worse)} are within {FACTOR:g} times PyTorch's error or "
        f"{ENOUGH:g} unit; in {better}\nFlambeau's error is less than half of PyTorch's."
    )
    if worse:
        summary += " Larger are:\n\n" + "\n".join(f"- {each}" for each in worse)
    heads = [f"{dtype}: {who}" for dtype in DTYPES for who in ("Flambeau", "PyTorch")]
    return PAGE.format(
        summary=summary,
        heads=" | ".join(heads),
        lines=" | ".join(["---"] * len(heads)),
        table="\n".join(table),
        machine=platform.machine(),
        date=f"{datetime.date.today():%d %B %Y}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="the cases; all of them unless given")
    parser.add_argument("--size", type=int, default=SIZE, help="how many elements")
    given = parser.parse_args()
    found = {}
    for name, row in rows(given.names or list(CASES), given.size):
        found[name] = row
        cells = ["-" if each is None else f"{shown(each.ours)}/{shown(each.theirs)}" for each in row.values()]
        marks = ["worse" for each in row.values() if each is not None and each.too_large]
        print(name, *cells, *marks, sep=" | ", flush=True)
    if not given.names and given.size == SIZE:
        FILE.write_text(page(found))


if __name__ == "__main__":
    sys.exit(main())
