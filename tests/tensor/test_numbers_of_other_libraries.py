"""Numbers of NumPy's, and integers in tensors, where functions take Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.differential import differential

INTEGERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "chunk": lambda T, x, two: x.chunk(two),
    "narrow": lambda T, x, two: x.narrow(0, 0, two),
    "matrix_power": lambda T, x, two: T.linalg.matrix_power(x, two),
    "pixel_shuffle": lambda T, x, two: T.nn.functional.pixel_shuffle(x.view(4, 2, 2), two),
    "pixel_unshuffle": lambda T, x, two: T.nn.functional.pixel_unshuffle(x.view(1, 4, 4), two),
    "channel_shuffle": lambda T, x, two: T.nn.functional.channel_shuffle(x.view(1, 4, 2, 2), two),
    "module": lambda T, x, two: T.nn.PixelShuffle(two)(x.view(4, 2, 2)),
}
NUMBERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "norm": lambda T, x, two: T.norm(x, two),
    "vector_norm": lambda T, x, two: T.linalg.vector_norm(x, two),
    "norm along": lambda T, x, two: x.norm(two, 1),
    "add": lambda T, x, two: T.add(x, x, alpha=two),
    "clamp": lambda T, x, two: x.clamp(max=two),
    "pow": lambda T, x, two: x.pow(two),
    "full": lambda T, x, two: T.full((2,), two),
    "smooth_l1_loss": lambda T, x, two: T.nn.functional.smooth_l1_loss(x, x * 3, beta=two),
    "huber_loss": lambda T, x, two: T.nn.functional.huber_loss(x, x * 3, delta=two),
    "native_dropout_backward": lambda T, x, two: T.ops.aten.native_dropout_backward(x, x > 3, two),
}


@pytest.mark.parametrize("of", [np.int64, np.int32, "tensor"])
@pytest.mark.parametrize("name", INTEGERS)
@differential
def test_integers(T: Any, name: str, of: Any) -> Any:
    two = T.tensor(2) if of == "tensor" else of(2)
    return INTEGERS[name](T, T.arange(16.0).view(4, 4), two)


@pytest.mark.parametrize("of", [np.int64, np.float64, np.float32])
@pytest.mark.parametrize("name", NUMBERS)
@differential
def test_numbers(T: Any, name: str, of: Any) -> Any:
    return NUMBERS[name](T, T.arange(16.0).view(4, 4), of(2))


@differential
def test_dims_of_the_nuclear_norm(T: Any) -> Any:
    return T.norm(T.arange(8.0).view(2, 2, 2), "nuc", [np.int64(1), np.int64(2)])
