"""Padding in all modes, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ....support.differential import differential, outcome, supported

MODES = ["constant", "reflect", "replicate", "circular"]
PADS: dict[tuple[int, ...], list[tuple[int, ...]]] = {
    (1, 3): [(3, 5), (2, 3, 5)],
    (0, 2): [(3, 5), (2, 3, 5)],
    (-1, 2): [(3, 5), (2, 3, 5)],
    (3, -2): [(3, 5)],
    (-2, -1): [(2, 3, 5)],
    (2, 1, 1, 0): [(2, 3, 4), (2, 2, 3, 4)],
    (-1, 1, 2, -1): [(2, 2, 3, 4)],
    (1, 1, 2, 0, 0, 1): [(2, 2, 3, 3), (1, 2, 2, 3, 3)],
}
CASES = [(pad, shape) for pad, shapes in PADS.items() for shape in shapes]


def numbers(T: Any, *shape: int) -> Any:
    return (T.arange(math.prod(shape), dtype=T.float64) * 1.7).sin().reshape(shape)


@pytest.mark.parametrize("mode", MODES)
@differential
def test_values_and_derivatives(T: Any, mode: str) -> Any:
    seen = []
    for pad, shape in CASES:
        x = numbers(T, *shape).requires_grad_()
        result = T.nn.functional.pad(x, pad, mode)
        (grad,) = T.autograd.grad((result**3).sum(), x, create_graph=True)
        seen.append((result, grad, *T.autograd.grad((grad**2).sum(), x)))
    return seen


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("mode", MODES)
@differential
def test_dtypes(T: Any, mode: str, dtype: str) -> Any:
    x = (numbers(T, 2, 3, 4).abs() * 9).to(getattr(T, dtype))
    results = [supported(lambda: T.nn.functional.pad(x, (1, 2), mode))]
    if dtype in ("float16", "bfloat16", "complex64"):
        y = x.clone().requires_grad_()
        results.append(T.autograd.grad(T.nn.functional.pad(y, (2, 2, 1, 1), mode).abs().sum(), y))
    return results


@differential
def test_constants(T: Any) -> Any:
    x = numbers(T, 3, 4)
    pad = T.nn.functional.pad
    return (
        pad(x, (1, 2), value=math.nan),
        pad(x, [1, 0, 2, -1], value=-math.inf),
        pad(x.long(), (1, 1), value=1.7),
        pad(x > 0, (1, 1), value=True),
        pad(x, ()),
        pad(T.ones(()), ()),
        pad(x.t(), (-1, -1)),
        pad(x.t(), (-1, 0, 1, 0)),
        T.constant_pad_nd(x, (1, 1), 2),
        T.constant_pad_nd(x.to(T.complex64), (0, 1), 2j),
        outcome(lambda: pad(T.ones(3, dtype=T.uint8), (1, 1), value=300.0), "cannot be converted to type"),
    )


@pytest.mark.parametrize("mode", MODES)
@differential
def test_memory_order(T: Any, mode: str) -> Any:
    image = numbers(T, 2, 3, 4, 5).to(memory_format=T.channels_last).requires_grad_()
    volume = numbers(T, 2, 3, 3, 3, 3).to(memory_format=T.channels_last_3d)
    padded = T.nn.functional.pad(image, (1, 1, 1, 1), mode)
    (grad,) = T.autograd.grad((padded**2).sum(), image)
    swapped = T.nn.functional.pad(image.detach().transpose(1, 2), (1, 0, 0, 1), mode)
    return padded, grad.contiguous(), T.nn.functional.pad(volume, (1,) * 6, mode), swapped


@pytest.mark.parametrize("mode", MODES)
@differential
def test_nothing_to_pad(T: Any, mode: str) -> Any:
    pad = T.nn.functional.pad
    return (
        pad(T.ones(0, 4, 6, 5), (1, 1, 1, 1), mode),
        outcome(lambda: pad(T.ones(2, 0, 6, 5), (1, 1, 1, 1), mode)),
        outcome(lambda: pad(T.ones(2, 4, 0, 5), (1, 1, 1, 1), mode)),
        pad(T.empty(1, 4, 6, 5, device="meta"), (1, 1, 1, 1), mode),
    )


@pytest.mark.parametrize("mode", MODES)
@differential
def test_lengths_and_limits(T: Any, mode: str) -> Any:
    def tried(shape: tuple[int, ...], pad: Any, *phrases: str) -> Any:
        return outcome(lambda: T.nn.functional.pad(T.ones(shape), pad, mode), *phrases)

    return (
        tried((4, 5), (1,), "Padding length must be divisible by 2"),
        tried((4,), (1, 1, 1, 1), "less than or equal to two times the input dimension"),
        tried((4, 5), (1, 1, 1, 1)),
        tried((2, 4, 6, 5), (1, 1)),
        tried((4, 5), (5, 5)),
        tried((4, 5), (6, 6)),
        tried((4, 5), (-3, -3)),
        tried((2, 4, 5), (-1, -4, 0, 0))[0],
        tried((4, 5), 1, "must be tuple of ints, not int"),
        tried((4, 5), (1.5, 1), "must be tuple of ints"),
    )


@differential
def test_modes(T: Any) -> Any:
    pad = T.nn.functional.pad
    x = T.ones(2, 3, 4)
    return (
        outcome(lambda: pad(x, (1, 1), "other"), "Unrecognised padding mode other"),
        outcome(lambda: pad(x, (1, 1), "reflect", 2.0), "doesn't take in value argument"),
        pad(x, (1, 1), "reflect", 0.0),
        outcome(lambda: pad(x, (1, 1), value=1j), "must be float, not complex"),
        outcome(
            lambda: pad(x, (4, 4), "reflect"), "Padding size should be less than the corresponding input dimension"
        ),
        outcome(lambda: pad(x, (5, 5), "circular"), "wrapping around more than once"),
        outcome(lambda: pad(x, (-3, -3), "replicate"), "is too small"),
        outcome(lambda: pad(x, (-3, -3)), "length must be non-negative"),
    )
