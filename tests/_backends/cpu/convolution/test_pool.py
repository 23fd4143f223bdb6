"""Generated kernels of pooling against NumPy's kernels and PyTorch: values, places, layouts, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._backends.tiers import available, generated, numpy_only
from flambeau._core.backend import LARGE

pytestmark = pytest.mark.skipif(not available(), reason="code cannot be generated here")

SHAPES = [(2, 5, 21, 37), (1, 70, 9, 33), (3, 2, 4, 250), (70, 16, 15)]
WINDOWS = [
    (2, 2, 0, 1),
    (3, 2, 1, 1),
    (3, 1, 1, 1),
    (2, 1, 0, 1),
    (3, 3, 1, 1),
    ((2, 3), (2, 1), (1, 1), (2, 2)),
    ((1, 4), (1, 5), (0, 2), (1, 1)),
]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions of the family that gave a result."""
    module = generated("pool")
    names: list[str] = []

    def watched(name: str) -> Any:
        function = getattr(module, name)

        def run(*args: Any, **kwargs: Any) -> Any:
            done = function(*args, **kwargs)
            if done is not None:
                names.append(name)
            return done

        return run

    for name in ("maxima", "maxima_backward", "means", "means_backward"):
        monkeypatch.setattr(module, name, watched(name))
    return names


def signal(shape: tuple[int, ...], nan: bool = False) -> Any:
    random = np.random.default_rng(sum(shape))
    values = random.integers(-9, 10, shape).astype(np.float64) / 4  # many are equal
    if nan:
        values[random.random(shape) < 0.1] = np.nan
        values[random.random(shape) < 0.1] = -np.inf
    return values


def prepared(T: Any, values: Any, dtype: str, layout: str) -> Any:
    x = T.tensor(values).to(getattr(T, dtype))
    if layout == "channels_last" and x.dim() == 4:
        x = x.contiguous(memory_format=T.channels_last)
    elif layout == "strided":
        x = T.stack([x, x], -1)[..., 0]
    return x.requires_grad_()


def with_gradient(T: Any, values: Any, dtype: str, layout: str, op: Any) -> tuple[Any, ...]:
    """What the op gives, the gradient of a weighted sum of its first result, and both strides."""
    x = prepared(T, values, dtype, layout)
    results = op(T, x)
    first = results[0] if isinstance(results, tuple) else results
    weights = np.random.default_rng(1).integers(-8, 9, tuple(first.shape)) / 8
    first.backward(T.tensor(weights).to(first.dtype))
    found = [*(results if isinstance(results, tuple) else (results,)), x.grad]
    return tuple(each.detach().double().numpy() for each in found), [each.stride() for each in found]


def compare(op: Any, values: Any, dtype: str, layout: str, rtol: float) -> None:
    ours, strides = with_gradient(flambeau, values, dtype, layout, op)
    theirs, their_strides = with_gradient(pytorch, values, dtype, layout, op)
    with numpy_only():
        reference, _ = with_gradient(flambeau, values, dtype, layout, op)
    for mine, other, numpy in zip(ours, theirs, reference, strict=True):
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(mine, numpy, rtol=rtol, atol=rtol)
    assert strides == their_strides


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
def test_max_pool(window: Any, layout: str, made: list[str]) -> None:
    for shape in SHAPES:
        for ceil in (False, True):
            arguments = (*window, ceil, True)
            compare(lambda T, x, a=arguments: T.nn.functional.max_pool2d(x, *a), signal(shape), "float32", layout, 1e-6)
    assert set(made) == {"maxima", "maxima_backward"}


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("window", [(2, 2, 0), (3, 1, 1)], ids=str)
def test_max_pool_of_other_dtypes(dtype: str, layout: str, window: Any, made: list[str]) -> None:
    # Gradients meet at several elements: in half precision PyTorch rounds after each addition in some layouts.
    rtol = {"float64": 1e-12, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
    for shape in SHAPES[:2]:
        compare(
            lambda T, x: T.nn.functional.max_pool2d(x, *window, return_indices=True),
            signal(shape),
            dtype,
            layout,
            rtol,
        )
    assert set(made) == {"maxima", "maxima_backward"}


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_nan_and_infinity_in_max_pool(window: Any, layout: str, made: list[str]) -> None:
    for shape in SHAPES[:3]:
        values = signal(shape, nan=True)
        compare(
            lambda T, x: T.nn.functional.max_pool2d(x, *window, return_indices=True), values, "float32", layout, 1e-6
        )
        x = prepared(flambeau, values, "float32", layout).detach()
        alone = flambeau.nn.functional.max_pool2d(x, *window)
        theirs = pytorch.nn.functional.max_pool2d(prepared(pytorch, values, "float32", layout).detach(), *window)
        np.testing.assert_array_equal(alone.numpy(), theirs.numpy())
        assert alone.stride() == theirs.stride()
    assert "maxima" in made


def test_a_line(made: list[str]) -> None:
    values = signal((3, 5, 601))
    for name, window in (("max_pool1d", (3, 2, 1)), ("avg_pool1d", (4, 3, 2)), ("adaptive_avg_pool1d", (7,))):
        compare(
            lambda T, x, n=name, w=window: getattr(T.nn.functional, n)(x, *w), values, "float32", "contiguous", 1e-6
        )
    x = flambeau.tensor(values).float()
    theirs = pytorch.nn.functional.max_pool1d(pytorch.tensor(values).float(), 3, 1, 1, 1)
    np.testing.assert_array_equal(flambeau.nn.functional.max_pool1d(x, 3, 1, 1, 1).numpy(), theirs.numpy())
    assert set(made) == {"maxima", "maxima_backward", "means", "means_backward"}


@pytest.mark.parametrize("window", [each for each in WINDOWS if each[3] == 1 or each[3] == (1, 1)], ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
def test_avg_pool(window: Any, layout: str, made: list[str]) -> None:
    for shape in SHAPES:
        for rest in ((False, True), (True, True), (True, False), (False, False), (False, True, 7), (True, True, -3)):
            arguments = (*window[:3], *rest)
            compare(lambda T, x, a=arguments: T.nn.functional.avg_pool2d(x, *a), signal(shape), "float32", layout, 2e-6)
    assert set(made) == {"means", "means_backward"}


@pytest.mark.parametrize("counts", [(2, 3), (3, 3), (4, 5), (7, 2), (3, 40)], ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_adaptive_avg_pool(counts: Any, layout: str, dtype: str, made: list[str]) -> None:
    rtol = {"float32": 2e-6, "float64": 1e-12, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
    for shape in SHAPES[:3]:
        compare(lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, counts), signal(shape), dtype, layout, rtol)
    assert set(made) == {"means", "means_backward"}


def test_batches_without_images(made: list[str]) -> None:
    x = flambeau.empty(0, 3, 64, 64, requires_grad=True)
    result = flambeau.nn.functional.max_pool2d(x, 2)
    assert result.shape == (0, 3, 32, 32)
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
    assert made == []


def test_places_that_are_none_do_not_write(made: list[str]) -> None:
    grad, x = flambeau.ones(1, 1, 64, 64), flambeau.ones(1, 1, 128, 128)
    places = flambeau.full((1, 1, 64, 64), 128 * 128)
    with pytest.raises(IndexError):
        flambeau.ops.aten.max_pool2d_with_indices_backward(grad, x, (2, 2), (2, 2), (0, 0), (1, 1), False, places)
    assert made == []


def test_integers_are_numpys(made: list[str]) -> None:
    integers = flambeau.arange(2 * LARGE + 2).reshape(1, 2, 1, LARGE + 1)
    assert flambeau.nn.functional.max_pool2d(integers, (1, 2)).flatten()[:2].tolist() == [1, 3]
    assert made == []
