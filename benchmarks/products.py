"""Matrix products of the shapes that networks are made of, with both gradients, Flambeau against PyTorch.

python benchmarks/products.py --threads 1 2 8 16
python benchmarks/products.py --only 'ViT|decoding' --dtype bfloat16 --quick
python benchmarks/products.py --list

Each line says: milliseconds of both, the ratio, and what part of the peak that is. The peak is the quickest product of
1536 x 1536 matrices of either framework with as many threads in the same run. The classes with the worst ratios come
last: the choice of a kernel by shape is in `flambeau/_ops/linalg/products.py` and `flambeau/_backends/cpu/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import _measure
from _measure import Run


class Case(NamedTuple):
    """`rows x inner` times `inner x columns`, `batch` of them; with a batch of 0 it is a layer with its bias."""

    family: str
    rows: int
    inner: int
    columns: int
    batch: int = 0

    @property
    def name(self) -> str:
        batch = f"{self.batch} x " if self.batch else ""
        return f"{self.family}, {batch}{self.rows}x{self.inner}x{self.columns}"

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * max(self.batch, 1) * self.rows * self.inner * self.columns


def _layers(family: str, width: int, hidden: int, rows: tuple[int, ...], joint: int = 3) -> Iterator[Case]:
    """The layers of a block: all projections in one product, the one behind attention, and both of the MLP."""
    for each in rows:
        yield Case(family, each, width, joint * width)
        yield Case(family, each, width, width)
        yield Case(family, each, width, hidden)
        yield Case(family, each, hidden, width)


def _heads(family: str, heads: int, width: int, lengths: tuple[int, ...], samples: tuple[int, ...]) -> Iterator[Case]:
    """Attention as two products for each head."""
    for length in lengths:
        for each in samples:
            yield Case(family, length, width, length, each * heads)
            yield Case(family, length, length, width, each * heads)


CASES = [
    *_layers("ViT-Ti", 192, 768, (17, 68, 197, 788)),
    *_layers("ViT-S", 384, 1536, (50, 197, 788, 1576)),
    *_layers("ViT-B", 768, 3072, (197, 788)),
    *_layers("GPT-2", 768, 3072, (128, 512, 1024)),
    *_layers("BERT", 768, 3072, (32, 256)),
    *_layers("small transformer", 64, 256, (32, 128, 1024)),
    *_layers("transformer", 256, 1024, (32, 128, 640, 2048)),
    *_layers("large transformer", 1024, 4096, (64, 256)),
    *_layers("Llama decoding", 512, 1376, (1, 2, 4, 8, 16)),
    *_layers("Llama-1B decoding", 2048, 5632, (1,), 1),
    *[Case("Mixer tokens", rows, 196, 256) for rows in (512, 2048, 4096)],
    *[Case("Mixer tokens", rows, 256, 196) for rows in (512, 2048, 4096)],
    *[Case("Mixer tokens", rows, 49, 256) for rows in (512, 2048)],
    *[Case("ConvNeXt", rows, width, 4 * width) for rows, width in ((12544, 40), (3136, 80), (784, 160), (196, 320))],
    *[Case("ConvNeXt", rows, 4 * width, width) for rows, width in ((12544, 40), (3136, 80), (784, 160), (196, 320))],
    *[Case("Swin", rows, width, 3 * width) for rows, width in ((12544, 96), (3136, 192), (784, 384), (196, 768))],
    *[Case("Swin", rows, width, width) for rows, width in ((12544, 96), (3136, 192), (784, 384), (196, 768))],
    *[Case("classifier", rows, inner, 1000) for rows in (1, 4, 32, 128) for inner in (512, 1280, 2048)],
    *[Case("vocabulary", rows, 256, 8192) for rows in (1, 32, 256)],
    *[Case("vocabulary", rows, 768, 50257) for rows in (1, 64)],
    *[Case("MLP", rows, 784, 256) for rows in (1, 16, 64, 256, 1024)],
    *[Case("MLP", rows, 256, 10) for rows in (1, 16, 64, 256, 1024)],
    *[Case("square", size, size, size) for size in (16, 32, 64, 100, 128, 200, 256, 400, 512, 768, 1024, 1500)],
    *_heads("ViT attention", 6, 64, (50, 197), (1, 4)),
    *_heads("GPT-2 attention", 12, 64, (64, 128, 256), (1, 4)),
    *_heads("Swin attention", 3, 32, (49,), (16, 64)),
    *_heads("small attention", 4, 16, (32, 128), (4, 16)),
    *[Case("decoding attention", 1, 64, length, 12) for length in (32, 128, 512)],
    *[Case("decoding attention", 1, length, 64, 12) for length in (32, 128, 512)],
]
PARTS = ("forward", "input", "weight")
"""The product, and the gradients of both factors."""


def prepare(torch: Any, case: Case, dtype: str) -> dict[str, Run]:
    """For each part a function without arguments that runs it as a network does."""
    torch.manual_seed(0)
    kind = getattr(torch, dtype)

    def random(*shape: int) -> Any:
        return torch.randn(case.batch, *shape).to(kind) if case.batch else torch.randn(*shape).to(kind)

    left, grad = random(case.rows, case.inner), random(case.rows, case.columns)
    if case.batch:
        right = random(case.inner, case.columns)
        return {
            "forward": lambda: torch.bmm(left, right),
            "input": lambda: torch.bmm(grad, right.mT),
            "weight": lambda: torch.bmm(left.mT, grad),
        }
    weight, bias = random(case.columns, case.inner), torch.randn(case.columns).to(kind)
    return {
        "forward": lambda: torch.nn.functional.linear(left, weight, bias),
        "input": lambda: torch.mm(grad, weight),
        "weight": lambda: torch.mm(grad.t(), left),
    }


def _peak(frameworks: list[Any], dtype: str, seconds: float) -> float:
    """Operations a second of the quickest large product."""
    case = Case("peak", 1536, 1536, 1536)
    runs = [prepare(each, case, dtype)["input"] for each in frameworks]
    return case.operations / min(each.best for each in _measure.alternate(runs, 9, seconds, False)) * 1e6


def _measure_all(options: Any) -> int:
    """All cases with one number of threads, in this process."""
    (threads,) = options.threads
    frameworks = [_measure.load(name, threads) for name in _measure.FRAMEWORKS]
    rounds, seconds = (9, 0.004) if options.quick else (21, 0.02)
    peak = _peak(frameworks, options.dtype, seconds)
    print(f"{threads} threads, {options.dtype}; peak {peak / 1e9:.0f} GFLOP/s; milliseconds, ratio, part of the peak")
    ratios: dict[str, float] = {}
    classes: dict[str, list[float]] = {}
    lines = []
    for case in CASES:
        if not options.only.search(case.name):
            continue
        runs = [prepare(each, case, options.dtype) for each in frameworks]
        for part in PARTS:
            found = _measure.alternate([each[part] for each in runs], rounds, seconds, False)
            own, other = found[0].best, found[1].best
            name, ratio, share = f"{case.name}, {part}", own / other, case.operations / own * 1e6 / peak
            ratios[name] = ratio
            classes.setdefault(f"{case.family}, {part}", []).append(ratio)
            lines.append({"name": name, "flambeau": own, "pytorch": other, "ratio": ratio, "share": share})
            print(f"{name:46}{own / 1e3:10.4f}{other / 1e3:10.4f}{ratio:8.2f}{share:8.1%}", flush=True)
    _measure.print_summary(ratios, "at most 1.05 each")
    means = {name: _measure.geometric_mean(each) for name, each in classes.items()}
    print(f"{sum([each > 1.05 for each in ratios.values()])} of {len(ratios)} above 1.05; the worst classes:")
    for name in sorted(means, key=lambda each: -means[each])[:12]:
        print(f"    {name:40}{means[name]:8.2f}")
    _measure.write_json(options.json, {"threads": threads, "dtype": options.dtype, "peak": peak, "products": lines})
    return 0


def main() -> int:
    parser = _measure.parser(__doc__ or "", "cases whose names match")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="a process for each number (1)")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--list", action="store_true", help="print the cases and leave")
    options = parser.parse_args()
    if options.list:
        print(*[case.name for case in CASES], f"{len(CASES)} shapes, {len(PARTS)} products each", sep="\n")
        return 0
    if len(options.threads) == 1:
        return _measure_all(options)
    status = 0
    for threads in options.threads:  # libraries read the number of threads once
        given = ["--threads", str(threads), "--dtype", options.dtype, "--only", options.only.pattern]
        given += ["--quick"] * options.quick
        if options.json is not None:
            given += ["--json", str(options.json.with_stem(f"{options.json.stem}_{threads}"))]
        status |= subprocess.run([sys.executable, __file__, *given], check=False, env=os.environ).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
