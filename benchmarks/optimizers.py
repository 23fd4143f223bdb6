"""Steps of optimizers, ops on lists and clipping, for few large and many small tensors: Flambeau against PyTorch.

python benchmarks/optimizers.py
python benchmarks/optimizers.py --only 'Adam.*10M' --threads 2

PyTorch runs its defaults: its optimizers then make one call for each op and list of tensors (foreach).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Run

Case = Callable[[Any], Run]
"""From the module that plays `torch` to what is to be timed."""

SHAPES: dict[str, list[tuple[int, ...]]] = {
    "10M in 4": [(1000, 2500)] * 4,
    "MLP of 100k": [(128, 784), (128,), (10, 128), (10,)],
    "tiny MLP": [(32, 16), (32,), (4, 32), (4,)],
    "100 small": [(16, 16), (64,)] * 50,
}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "Adam": ("Adam", {}),
    "Adam amsgrad": ("Adam", {"amsgrad": True}),
    "AdamW": ("AdamW", {}),
    "RMSprop": ("RMSprop", {}),
    "Adagrad": ("Adagrad", {}),
}
LIST_OPS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "_foreach_zero_": lambda one, two: (),
    "_foreach_mul_": lambda one, two: (0.999,),
    "_foreach_add_": lambda one, two: (one,),
    "_foreach_lerp_": lambda one, two: (one, 0.1),
    "_foreach_addcdiv_": lambda one, two: (one, two, 0.1),
    "_foreach_norm": lambda one, two: (),
}


def _parameters(torch: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    torch.manual_seed(0)
    params = [torch.randn(shape).requires_grad_(True) for shape in shapes]
    for each in params:
        each.grad = torch.randn(each.shape) * 0.1
    return params


def _step(name: str, options: dict[str, Any], shapes: list[tuple[int, ...]]) -> Case:
    def case(torch: Any) -> Run:
        return getattr(torch.optim, name)(_parameters(torch, shapes), **options).step  # type: ignore[no-any-return]

    return case


def _list_op(name: str, shapes: list[tuple[int, ...]]) -> Case:
    def case(torch: Any) -> Run:
        lists = [[torch.full(shape, 0.5 + number) for shape in shapes] for number in range(3)]
        function, arguments = getattr(torch, name), LIST_OPS[name](lists[1], lists[2])
        return lambda: function(lists[0], *arguments)

    return case


def _clip(shapes: list[tuple[int, ...]]) -> Case:
    def case(torch: Any) -> Run:
        params = _parameters(torch, shapes)
        return lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)

    return case


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for size, shapes in SHAPES.items():
        cases |= {f"{title}, {size}": _step(name, options, shapes) for title, (name, options) in OPTIMIZERS.items()}
        cases |= {f"{name}, {size}": _list_op(name, shapes) for name in LIST_OPS}
        cases[f"clip_grad_norm_, {size}"] = _clip(shapes)
    return cases


def main() -> int:
    """Measure the chosen cases."""
    parser = _measure.parser("Updates of lists of tensors, Flambeau against PyTorch.", "only cases whose name matches")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rounds, seconds = (7, 0.01) if options.quick else (21, 0.02)
    torch, flambeau = _measure.load("torch", options.threads), _measure.load("flambeau", options.threads)
    flambeau.ones(10000) * 2  # from here on small inputs have kernels too
    cases = _cases()
    print(f"PyTorch {torch.__version__}, float32, {options.threads} thread(s)")
    print(f"{'case':<36}{'Flambeau us':>12}{'PyTorch us':>12}{'ratio':>9}")
    ratios: dict[str, float] = {}
    for name in filter(options.only.search, cases):
        ours, theirs = _measure.alternate(
            [cases[name](each) for each in (flambeau, torch)], rounds, seconds, collect=False
        )
        ratios[name] = ours.median / theirs.median
        print(f"{name:<36}{ours.median:>12.1f}{theirs.median:>12.1f}{ratios[name]:>9.3f}", flush=True)
    _measure.print_summary(ratios, goal="steps at most 0.8")
    _measure.write_json(options.json, {"pytorch": torch.__version__, "threads": options.threads, "ratios": ratios})
    return 0


if __name__ == "__main__":
    sys.exit(main())
