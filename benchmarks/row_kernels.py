"""Softmax, normalisations and cross entropy, forward and backward, at several sizes: Flambeau against PyTorch.

python benchmarks/row_kernels.py
python benchmarks/row_kernels.py --only 'softmax.*backward' --dtype bfloat16 --threads 2
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Run

Case = Callable[[Any, Any], Run]
"""From the module that plays `torch` and one of its dtypes to what is to be timed."""

CASES: dict[str, Case] = {}

ROWS: tuple[tuple[int, ...], ...] = ((4, 4), (64, 10), (512, 256), (1024, 1024), (4096, 1024), (64, 50000))
IMAGES: tuple[tuple[int, ...], ...] = ((2, 2, 3, 3), (16, 64, 32, 32), (8, 256, 14, 14))


def _both(name: str, make: Callable[[Any, Any], tuple[Callable[[], Any], list[Any]]]) -> None:
    """Enter an op forward, recorded, and backward: `make` gives what calls it, and the leaves to differentiate by."""

    def forward(torch: Any, dtype: Any) -> Run:
        return make(torch, dtype)[0]

    def backward(torch: Any, dtype: Any) -> Run:
        call, leaves = make(torch, dtype)
        result = call()
        grad = torch.randn(result.shape).to(result.dtype)
        return lambda: torch.autograd.grad(result, leaves, grad, retain_graph=True)

    CASES[f"{name}"] = forward
    CASES[f"{name}, backward"] = backward


def _input(torch: Any, dtype: Any, shape: tuple[int, ...], channels_last: bool = False) -> Any:
    torch.manual_seed(0)
    x = torch.randn(*shape).to(dtype)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    return x.requires_grad_()


def _softmax(name: str, shape: tuple[int, ...], dim: int) -> None:
    def make(torch: Any, dtype: Any) -> tuple[Callable[[], Any], list[Any]]:
        x = _input(torch, dtype, shape)
        function = getattr(torch.nn.functional, name)
        return lambda: function(x, dim), [x]

    _both(f"{name} {'x'.join(map(str, shape))} dim={dim}", make)


def _layer(title: str, shape: tuple[int, ...], build: Callable[[Any], Any], channels_last: bool = False) -> None:
    def make(torch: Any, dtype: Any) -> tuple[Callable[[], Any], list[Any]]:
        x = _input(torch, dtype, shape, channels_last)
        layer = build(torch.nn).to(dtype)
        return lambda: layer(x), [x, *layer.parameters()]

    _both(f"{title} {'x'.join(map(str, shape))}{' channels_last' if channels_last else ''}", make)


def _cross_entropy(shape: tuple[int, ...]) -> None:
    def make(torch: Any, dtype: Any) -> tuple[Callable[[], Any], list[Any]]:
        x = _input(torch, dtype, shape)
        target = torch.randint(shape[1], (shape[0], *shape[2:]))
        return lambda: torch.nn.functional.cross_entropy(x, target), [x]

    _both(f"cross_entropy {'x'.join(map(str, shape))}", make)


def _enter_cases() -> None:
    for shape in ROWS:
        for name in ("softmax", "log_softmax"):
            _softmax(name, shape, -1)
    for name in ("softmax", "log_softmax"):
        _softmax(name, (16, 64, 32, 32), 1)
    for shape in ROWS:
        _layer("LayerNorm", shape, lambda nn, size=shape[-1]: nn.LayerNorm(size))  # type: ignore[misc]
        _layer("RMSNorm", shape, lambda nn, size=shape[-1]: nn.RMSNorm(size))  # type: ignore[misc]
    for shape in ((4, 4), (64, 10), (512, 256)):
        _layer("BatchNorm1d", shape, lambda nn, size=shape[-1]: nn.BatchNorm1d(size))  # type: ignore[misc]
    for shape in IMAGES:
        for last in (False, True):
            _layer("BatchNorm2d", shape, lambda nn, size=shape[1]: nn.BatchNorm2d(size), last)  # type: ignore[misc]
        _layer("BatchNorm2d eval", shape, lambda nn, size=shape[1]: nn.BatchNorm2d(size).eval())  # type: ignore[misc]
        _layer("GroupNorm", shape, lambda nn, size=shape[1]: nn.GroupNorm(2, size))  # type: ignore[misc]
    for shape in ((3, 4), *ROWS[1:], (8, 21, 64, 64)):
        _cross_entropy(shape)


def _agree(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Whether two results, or two tuples of them, are the same up to `tolerance` times their largest number."""
    if isinstance(theirs, tuple):
        return all(_agree(*pair, tolerance) for pair in zip(ours, theirs, strict=True))
    left, right = (each.detach().double().numpy() for each in (ours, theirs))
    return bool(abs(left - right).max() <= tolerance * max(abs(right).max(), 1e-3))


def main() -> int:
    """Measure the chosen cases; 1 if results differ."""
    parser = _measure.parser("Row kernels, Flambeau against PyTorch.", "only cases whose name matches")
    parser.add_argument("--dtype", default="float32", help="the dtype of inputs and parameters")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rounds, seconds = (7, 0.01) if options.quick else (21, 0.02)
    torch, flambeau = _measure.load("torch", options.threads), _measure.load("flambeau", options.threads)
    _enter_cases()
    print(f"PyTorch {torch.__version__}, {options.dtype}, {options.threads} thread(s)")
    print(f"{'case':<52}{'Flambeau us':>12}{'PyTorch us':>12}{'ratio':>9}")
    ratios: dict[str, float] = {}
    differing, tolerance = 0, 3e-2 if "16" in options.dtype else 1e-4
    for name in filter(options.only.search, CASES):
        runs = [CASES[name](each, getattr(each, options.dtype)) for each in (flambeau, torch)]
        if not _agree(runs[0](), runs[1](), tolerance):
            print(f"{name:<52}differs", flush=True)
            differing += 1
            continue
        ours, theirs = _measure.alternate(runs, rounds, seconds, collect=False)
        ratios[name] = ours.median / theirs.median
        print(f"{name:<52}{ours.median:>12.1f}{theirs.median:>12.1f}{ratios[name]:>9.3f}", flush=True)
    _measure.print_summary(ratios, goal="each at most 0.9, small ones at most 1.0")
    _measure.write_json(options.json, {"pytorch": torch.__version__, "dtype": options.dtype, "ratios": ratios})
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
