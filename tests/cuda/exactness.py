"""How exact float32 convolutions, TF32 and 8-bit products are on a GPU, beside PyTorch.

    python -m tests.cuda.exactness

Each line is a call, the error of PyTorch's and of Flambeau's result relative to float64 (its largest, in parts of the
largest element), and how many different results 30 runs of it give. A line fails where Flambeau's error is more than
twice PyTorch's, or where its results differ although PyTorch's do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch as pytorch

import flambeau

_RUNS = 30
Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]
_SHAPES: dict[str, list[Case]] = {
    "conv1d": [((4, 32, 200), (48, 32, 5), {"padding": 2}), ((2, 8, 50), (12, 8, 5), {"stride": 2})],
    "conv2d": [((4, 32, 28, 28), (48, 32, 3, 3), {"padding": 1})],
    "conv3d": [((2, 16, 12, 14, 10), (24, 16, 3, 3, 3), {"padding": 1}), ((2, 4, 8, 9, 7), (6, 4, 3, 3, 3), {})],
    "conv_transpose1d": [((4, 32, 60), (32, 24, 4), {"stride": 2})],
    "conv_transpose2d": [((4, 16, 14, 14), (16, 24, 3, 3), {"stride": 2, "padding": 1})],
    "conv_transpose3d": [
        ((2, 16, 7, 8, 6), (16, 12, 3, 3, 3), {"stride": 2, "padding": 1}),
        ((1, 4, 5, 6, 4), (4, 5, 3, 3, 3), {}),
    ],
}


def _parts(torch: Any, name: str, case: Case, double: bool) -> Any:
    """The result of a convolution and its two gradients."""
    shape, kernel, options = case
    pytorch.manual_seed(0)
    made = [pytorch.randn(each).tolist() for each in (shape, kernel)]
    dtype = torch.float64 if double else torch.float32
    x, w = (torch.tensor(each, dtype=dtype, device="cuda", requires_grad=True) for each in made)
    result = getattr(torch.nn.functional, name)(x, w, **options)
    return [result, *torch.autograd.grad(result.square().sum(), (x, w))]


def _runs(torch: Any, name: str, case: Case) -> tuple[list[float], int]:
    """The errors of a convolution's parts, and how many different results some runs give."""
    exact = _parts(torch, name, case, True)
    found = [_parts(torch, name, case, False) for _ in range(_RUNS)]
    errors = [
        float((one.double() - each).abs().max() / each.abs().max()) for one, each in zip(found[0], exact, strict=True)
    ]
    return errors, len({tuple(part.detach().cpu().numpy().tobytes() for part in each) for each in found})


def _attention(torch: Any, dtype: Any) -> Any:
    pytorch.manual_seed(1)
    q, k, v = (torch.tensor(pytorch.randn(2, 8, 128, 64).tolist(), device="cuda").to(dtype) for _ in range(3))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _product(torch: Any, precision: str) -> Any:
    pytorch.manual_seed(2)
    a, b = (torch.tensor(pytorch.randn(512, 512).tolist(), device="cuda") for _ in range(2))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        return a @ b
    finally:
        torch.set_float32_matmul_precision(before)


def _narrow_product(torch: Any, kinds: tuple[str, str], by_row: bool, out: str) -> Any:
    pytorch.manual_seed(3)
    a, b = (torch.tensor(pytorch.randn(256, 512).tolist(), device="cuda") for _ in range(2))
    sizes = [each.abs().amax(1, keepdim=True) if by_row else each.abs().max() for each in (a, b)]
    first, second = (
        (each / size * 100).to(getattr(torch, kind)) for each, size, kind in zip((a, b), sizes, kinds, strict=True)
    )
    scales = [size / 100 for size in sizes]
    return torch._scaled_mm(
        first, second.t(), scales[0], scales[1].t() if by_row else scales[1], out_dtype=getattr(torch, out)
    )


def _compared(name: str, call: Callable[[Any], Any]) -> bool:
    """Print how far Flambeau's result of a call is from PyTorch's, and whether it has its bits; whether it is wrong."""
    try:
        theirs, ours = (call(each).double().cpu().numpy() for each in (pytorch, flambeau))
    except Exception as error:
        print(f"{name:30} raised {type(error).__name__}: {str(error)[:150]}")
        return True
    apart = float(abs(theirs - ours).max() / abs(theirs).max())
    bad = apart > (1e-5 if name in ("float32 product, highest", "attention, float32") else 2e-2)
    same = "the same bits" if (theirs == ours).all() else "other bits"
    print(f"{name:30} apart {apart:.1e}, {same}{'  WRONG' if bad else ''}", flush=True)
    return bad


def main() -> int:
    """The command."""
    wrong = 0
    for each in (pytorch, flambeau):
        each.backends.cudnn.allow_tf32 = False
    print("errors of result, gradient of input, of weight: PyTorch; Flambeau; different results in 30 runs")
    for name, cases in _SHAPES.items():
        for case in cases:
            (theirs, many), (ours, count) = _runs(pytorch, name, case), _runs(flambeau, name, case)
            bad = any(b > 2 * a + 1e-7 for a, b in zip(theirs, ours, strict=True)) or count > max(many, 1)
            wrong += bad
            shown = "; ".join(" ".join(f"{one:.1e}" for one in each) for each in (theirs, ours))
            print(f"{name:17} {case[0]!s:24} {shown}; {many}, {count}{'  WRONG' if bad else ''}", flush=True)
    e4, e5 = "float8_e4m3fn", "float8_e5m2"
    calls: dict[str, Callable[[Any], Any]] = {
        **{f"float32 product, {word}": partial(_product, precision=word) for word in ("highest", "high", "medium")},
        "e4m3 x e4m3 -> bfloat16": lambda t: _narrow_product(t, (e4, e4), False, "bfloat16"),
        "e4m3 x e5m2 -> bfloat16": lambda t: _narrow_product(t, (e4, e5), False, "bfloat16"),
        "e5m2 x e4m3 -> float16": lambda t: _narrow_product(t, (e5, e4), False, "float16"),
        "e4m3 x e4m3 -> float32": lambda t: _narrow_product(t, (e4, e4), False, "float32"),
        "e4m3 x e4m3, scales of rows": lambda t: _narrow_product(t, (e4, e4), True, "bfloat16"),
        "attention, bfloat16": lambda t: _attention(t, t.bfloat16),
        "attention, float16": lambda t: _attention(t, t.float16),
        "attention, float32": lambda t: _attention(t, t.float32),
    }
    wrong += sum([_compared(name, call) for name, call in calls.items()])
    print(f"{wrong} lines are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
