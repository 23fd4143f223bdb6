"""Averages of quantized tensors half-way between two codes, beside PyTorch's: odd zero points tell roundings apart."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential


@contextlib.contextmanager
def engine(T: Any, name: str) -> Iterator[None]:
    before = T.backends.quantized.engine
    T.backends.quantized.engine = name
    try:
        yield
    finally:
        T.backends.quantized.engine = before


def codes(T: Any, dtype: str, *shape: int) -> Any:
    """Codes of which many averages lie at halves."""
    T.manual_seed(5)
    low, high = (0, 256) if dtype == "quint8" else (-128, 128)
    return T.quantize_per_tensor((T.randint(low, high, shape) - 7) * 0.1, 0.1, 7, getattr(T, dtype))


def averages(T: Any, q: Any) -> list[Any]:
    functional = T.nn.functional
    made = [
        *(functional.avg_pool2d(q, each) for each in (2, (2, 3))),
        functional.avg_pool2d(q, 2, 2, 1),
        functional.avg_pool2d(q, 2, 2, 1, count_include_pad=False),
        functional.avg_pool2d(q, 3, 2, 1, ceil_mode=True),
        functional.avg_pool2d(q, 3, 2, 1, divisor_override=2),
        functional.avg_pool1d(q[:, :, 0], 2),
        *(functional.adaptive_avg_pool2d(q, each) for each in (1, (3, 4), (3, None))),
        *(q.mean(), q.mean((2, 3)), q.mean((3, 2), True), q.mean(-1)),
    ]
    return [each.int_repr().tolist() for each in made]


@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("name", ["fbgemm", "qnnpack"])
@differential
def test_halves(T: Any, name: str, dtype: str) -> Any:
    if name not in T.backends.quantized.supported_engines:
        pytest.skip("PyTorch was built without this engine")
    with engine(T, name):
        return averages(T, codes(T, dtype, 2, 3, 6, 8))


@differential
def test_halves_between_images(T: Any) -> Any:
    functional, q = T.nn.functional, codes(T, "quint8", 2, 3, 6, 8)
    volume = codes(T, "quint8", 1, 3, 4, 6, 4)
    made = [
        functional.interpolate(q, scale_factor=2, mode="bilinear"),
        functional.interpolate(q, size=(9, 11), mode="bilinear", align_corners=True),
        functional.avg_pool3d(volume, 2),
        functional.adaptive_avg_pool3d(volume, (2, 3, 2)),
    ]
    return [each.int_repr().tolist() for each in made]


def test_channels_that_are_vectors() -> None:
    """Sixteen channels at a time are rounded before the zero point is added, the rest after it."""
    q = codes(flambeau, "quint8", 1, 20, 2, 2).contiguous(memory_format=flambeau.channels_last)
    centred = (q.int_repr().double() - 7).mean((2, 3), True)
    rounded = flambeau.cat([centred[:, :16].round() + 7, (centred[:, 16:] + 7).round()], 1)
    found = flambeau.nn.functional.avg_pool2d(q, 2).int_repr().double()
    assert found.tolist() == rounded.tolist()
    assert found.tolist() != (centred + 7).round().tolist()


@differential
def test_an_engine_that_there_is_not(T: Any) -> Any:
    before = T.backends.quantized.engine
    with pytest.raises(RuntimeError):
        T.backends.quantized.engine = "no such engine"
    return T.backends.quantized.engine == before
