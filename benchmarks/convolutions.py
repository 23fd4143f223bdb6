"""Convolutions, forward and backward, Flambeau against PyTorch, in one process.

python benchmarks/convolutions.py --threads 2
python benchmarks/convolutions.py --only '3x3' --json convolutions.json
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import _measure
from _measure import Run


class Case(NamedTuple):
    """A convolution: the input's and the weight's shapes, and the options."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    dtype: str = "float32"
    last: bool = False

    @property
    def output(self) -> tuple[int, ...]:
        sizes = [
            (size + 2 * self.padding - self.dilation * (taps - 1) - 1) // self.stride + 1
            for size, taps in zip(self.input[2:], self.weight[2:], strict=True)
        ]
        return (self.input[0], self.weight[0], *sizes)

    @property
    def operations(self) -> int:
        """Multiplications and additions of the plain algorithm."""
        return 2 * math.prod(self.output) * math.prod(self.weight[1:])


CASES = {
    "3x3 64, 32x32": Case((16, 64, 32, 32), (64, 64, 3, 3), padding=1),
    "3x3 128, 16x16": Case((16, 128, 16, 16), (128, 128, 3, 3), padding=1),
    "3x3 256, 8x8": Case((16, 256, 8, 8), (256, 256, 3, 3), padding=1),
    "3x3 512, 4x4": Case((16, 512, 4, 4), (512, 512, 3, 3), padding=1),
    "3x3 64 to 128, stride 2": Case((16, 64, 32, 32), (128, 64, 3, 3), stride=2, padding=1),
    "3x3 3 to 64": Case((16, 3, 32, 32), (64, 3, 3, 3), padding=1),
    "3x3 1 to 32": Case((64, 1, 28, 28), (32, 1, 3, 3)),
    "3x3 32 to 64": Case((64, 32, 26, 26), (64, 32, 3, 3)),
    "3x3 256, 14x14": Case((8, 256, 14, 14), (256, 256, 3, 3), padding=1),
    "3x3 64, batch 1": Case((1, 64, 56, 56), (64, 64, 3, 3), padding=1),
    "3x3 64, channels last": Case((16, 64, 32, 32), (64, 64, 3, 3), padding=1, last=True),
    "3x3 64, dilation 2": Case((4, 64, 32, 32), (64, 64, 3, 3), padding=2, dilation=2),
    "3x3 64, float64": Case((8, 64, 32, 32), (64, 64, 3, 3), padding=1, dtype="float64"),
    "3x3 64, bfloat16": Case((2, 64, 16, 16), (64, 64, 3, 3), padding=1, dtype="bfloat16"),
    "5x5 32": Case((16, 32, 28, 28), (64, 32, 5, 5), padding=2),
    "7x7 3 to 64, stride 2": Case((4, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
    "1x1 64 to 256": Case((16, 64, 32, 32), (256, 64, 1, 1)),
    "1x1 256 to 64": Case((8, 256, 14, 14), (64, 256, 1, 1)),
    "1x1 64 to 128, stride 2": Case((16, 64, 32, 32), (128, 64, 1, 1), stride=2),
    "32 groups of 4": Case((8, 128, 28, 28), (128, 4, 3, 3), padding=1, groups=32),
    "depthwise 3x3, 56x56": Case((8, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64),
    "depthwise 3x3, stride 2": Case((8, 64, 56, 56), (64, 1, 3, 3), stride=2, padding=1, groups=64),
    "depthwise 7x7, 28x28": Case((16, 96, 28, 28), (96, 1, 7, 7), padding=3, groups=96),
    "1-d 64": Case((16, 64, 512), (64, 64, 3), padding=1),
    "3-d 16 to 32": Case((2, 16, 16, 16, 16), (32, 16, 3, 3, 3), padding=1),
}
PARTS = ("forward", "input", "weight")


def prepare(torch: Any, case: Case) -> dict[str, Run]:
    """For each part a function without arguments that runs it."""
    torch.manual_seed(0)
    dtype = getattr(torch, case.dtype)
    input, weight, grad = (torch.randn(shape).to(dtype) for shape in (case.input, case.weight, case.output))
    if case.last:
        input, grad = (each.contiguous(memory_format=torch.channels_last) for each in (input, grad))
    rank = len(case.input) - 2
    convolve = getattr(torch.nn.functional, f"conv{rank}d")
    options = {name: getattr(case, name) for name in ("stride", "padding", "dilation", "groups")}

    def forward() -> Any:
        return convolve(input, weight, **options)

    def backward(of: Any) -> Callable[[], Any]:
        """The gradient of one operand. The graph is made once: only the walk through it is timed."""
        operands = [each.detach().requires_grad_(each is of) for each in (input, weight)]
        output = convolve(*operands, **options)
        (leaf,) = (each for each in operands if each.requires_grad)
        return lambda: torch.autograd.grad(output, leaf, grad, retain_graph=True)[0]

    return {"forward": forward, "input": backward(input), "weight": backward(weight)}


def agree(left: Any, right: Any, dtype: str) -> bool:
    """Whether two results are the same up to rounding."""
    ours, theirs = left.double().numpy(), right.double().numpy()
    allowed = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 3e-2}[dtype] * abs(theirs).max()
    return ours.shape == theirs.shape and bool((abs(ours - theirs) <= allowed).all())


def main() -> int:
    parser = _measure.parser(__doc__.splitlines()[0], "only cases whose name matches")
    parser.add_argument("--threads", type=int, default=1, help="how many threads both frameworks may use")
    options = parser.parse_args()
    torch = _measure.load("torch", options.threads)
    flambeau = _measure.load("flambeau", options.threads)
    rounds, seconds = (5, 0.02) if options.quick else (15, 0.05)
    ratios: dict[str, float] = {}
    rows: dict[str, Any] = {}
    failed = False
    print(f"{'billions of operations per second':36}" + "".join(f"{part:>24}" for part in PARTS))
    for name, case in CASES.items():
        if not options.only.search(name):
            continue
        theirs, ours = prepare(torch, case), prepare(flambeau, case)
        cells = []
        for part in PARTS:
            if not agree(ours[part](), theirs[part](), case.dtype):
                cells.append("differs")
                failed = True
                continue
            timings = _measure.alternate([ours[part], theirs[part]], rounds, seconds, collect=True)
            speeds = [case.operations / each.median / 1e3 for each in timings]
            ratio = timings[0].median / timings[1].median
            ratios[f"{name}, {part}"] = ratio
            rows[f"{name}, {part}"] = {"flambeau": speeds[0], "torch": speeds[1], "ratio": ratio}
            cells.append(f"{speeds[0]:6.1f} /{speeds[1]:6.1f} = {ratio:5.2f}")
        print(f"{name:36}" + "".join(f"{cell:>24}" for cell in cells), flush=True)
    _measure.print_summary(ratios, "no ratio above 1")
    _measure.write_json(options.json, {"threads": options.threads, "convolutions": rows})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
