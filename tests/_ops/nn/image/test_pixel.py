"""Channels moved into pixels, and shuffled, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ....support.differential import differential, outcome

CASES = [
    ("pixel_shuffle", (2, 8, 3, 2), 2),
    ("pixel_shuffle", (18, 1, 2), 3),
    ("pixel_shuffle", (2, 1, 4, 2, 2), 2),
    ("pixel_unshuffle", (2, 3, 4, 6), 2),
    ("pixel_unshuffle", (3, 3, 6), 3),
    ("pixel_unshuffle", (2, 1, 2, 4, 4), 2),
    ("channel_shuffle", (2, 6, 3, 2), 2),
    ("channel_shuffle", (1, 6, 4), 3),
    ("channel_shuffle", (0, 4, 2), 2),
]


def numbers(T: Any, *shape: int, dtype: str = "float64") -> Any:
    count = 1
    for size in shape:
        count *= size
    return T.arange(count).reshape(shape).to(getattr(T, dtype))


@pytest.mark.parametrize(("name", "shape", "number"), CASES)
@differential
def test_values_and_derivatives(T: Any, name: str, shape: tuple[int, ...], number: int) -> Any:
    x = numbers(T, *shape).requires_grad_()
    result = getattr(T.nn.functional, name)(x, number)
    (grad,) = T.autograd.grad((result**3).sum(), x, create_graph=True)
    return result, getattr(T, name)(x, number), grad, T.autograd.grad((grad**2).sum(), x)


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "uint8", "bool"])
@differential
def test_dtypes(T: Any, dtype: str) -> Any:
    x = numbers(T, 1, 4, 2, 2, dtype=dtype)
    return T.pixel_shuffle(x, 2), T.pixel_unshuffle(x, 2), T.channel_shuffle(x, 2)


@differential
def test_memory_order(T: Any) -> Any:
    x = numbers(T, 2, 8, 4, 4)
    last = x.to(memory_format=T.channels_last)
    swapped = x.transpose(2, 3)
    ops = (T.pixel_shuffle, T.pixel_unshuffle, T.channel_shuffle)
    empty = T.channel_shuffle(x[:, :, :0], 2), T.pixel_shuffle(x[:0], 2)
    return [op(each, 2) for op in ops for each in (last, swapped)], empty


@differential
def test_without_derivative(T: Any) -> Any:
    x = numbers(T, 2, 4, 2).requires_grad_()
    result = T.native_channel_shuffle(x, 2)
    return result, outcome(
        lambda: result.sum().backward(), "derivative for aten::native_channel_shuffle is not implemented"
    )


@differential
def test_errors(T: Any) -> Any:
    x = T.ones(2, 4, 6, 5)
    return (
        outcome(lambda: T.pixel_shuffle(x[0, 0], 2), "at least 3 dimensions"),
        outcome(lambda: T.pixel_shuffle(x, 3), "input.size(-3)=4 is not divisible by 9"),
        outcome(lambda: T.pixel_shuffle(x, 0), "expects a positive upscale_factor, but got 0"),
        outcome(lambda: T.pixel_shuffle(x, 2.0), "must be int, not float"),
        outcome(lambda: T.pixel_unshuffle(x[0, 0], 2), "at least 3 dimensions"),
        outcome(lambda: T.pixel_unshuffle(x, 2), "input.size(-1)=5 is not divisible by 2"),
        outcome(lambda: T.pixel_unshuffle(x, 4), "input.size(-2)=6 is not divisible by 4"),
        outcome(lambda: T.pixel_unshuffle(x, -1), "expects a positive downscale_factor"),
        outcome(lambda: T.channel_shuffle(x, 3), "Number of channels must be divisible by groups"),
        outcome(lambda: T.channel_shuffle(x, 0), "must be positive"),
        outcome(lambda: T.channel_shuffle(x[0, 0], 2), "expects input with > 2 dims"),
        outcome(lambda: T.native_channel_shuffle(x, 3), "Number of channels must be divisible by groups"),
    )
