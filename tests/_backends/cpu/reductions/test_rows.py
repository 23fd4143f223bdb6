"""Generated softmax, log_softmax and cosines beside NumPy's and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.reductions import rows

from .row_cases import close, compare

NAMES = ["softmax", "log_softmax"]
# Long rows, with and without rests; short ones, of which several lie in a vector; dimensions that are not the last.
SHAPES = [((3, 1100), 1), ((5, 33), -1), ((19, 10), 1), ((2, 3), 1), ((7,), 0), ((1, 1), 1)]
COLUMNS = [((2, 5, 300), 1), ((300, 3), 0), ((3, 2, 4, 5), 1), ((1, 200, 3), 1)]


def _array(*shape: int, seed: int = 0, scale: float = 3.0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape) * scale


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_values_and_gradients(name: str, dtype: str) -> None:
    for shape, dim in SHAPES + (COLUMNS if dtype in ("float32", "bfloat16") else []):
        compare(dtype, lambda T, x, dim=dim: getattr(T, name)(x, dim), [_array(*shape)], tolerance=4)


@pytest.mark.parametrize("name", NAMES)
def test_not_contiguous(name: str) -> None:
    compare("float32", lambda T, x: getattr(T, name)(x.transpose(0, 2)[:, ::2], 1), [_array(6, 40, 8)], tolerance=4)
    compare("float32", lambda T, x: getattr(T, name)(x.expand(4, 50), 1), [_array(50)], tolerance=4)


@pytest.mark.parametrize("shape", [(4, 50), (12, 6), (6, 12)])
@pytest.mark.parametrize("name", NAMES)
def test_infinities_and_nan(name: str, shape: tuple[int, int]) -> None:
    x = _array(*shape).astype(np.float32)
    x[0, 1] = np.inf
    x[1, 2] = np.nan
    x[2] = -np.inf
    x[3, :3] = -np.inf
    for dim in (0, 1):
        array = x if dim else np.ascontiguousarray(x.T)
        got = getattr(flambeau, name)(flambeau.from_numpy(array), dim).numpy()
        close(got, getattr(torch, name)(torch.from_numpy(array), dim).numpy(), 3e-6)


@pytest.mark.parametrize("length", [8, 50])
def test_large_and_far_apart(length: int) -> None:
    x = np.zeros((8, length), np.float32)
    x[0] = 1e30
    x[1, 0] = 3e38
    x[2, 0] = 100.0
    x[3] = np.linspace(-200, 0, length)
    x[4, 0] = 87.0
    got = flambeau.softmax(flambeau.from_numpy(x), 1).numpy()
    logs = flambeau.log_softmax(flambeau.from_numpy(x), 1).numpy()
    close(got, torch.softmax(torch.from_numpy(x), 1).numpy(), 1e-6)
    close(logs, torch.log_softmax(torch.from_numpy(x), 1).numpy(), 1e-6)
    assert got[1, 1] == 0


@pytest.mark.parametrize("name", NAMES)
def test_nothing_and_single_numbers(name: str) -> None:
    for shape in ((0, 3), (3, 0), ()):
        x = torch.ones(shape)
        got = getattr(flambeau, name)(flambeau.ones(shape), -1)
        assert got.tolist() == getattr(torch, name)(x, -1).tolist()


def test_a_long_row_is_summed_without_loss() -> None:
    x = np.zeros((1, 1 << 20), np.float32)
    got = flambeau.softmax(flambeau.from_numpy(x), 1).numpy()
    np.testing.assert_array_equal(got, np.float32(2.0**-20))


def test_second_derivatives_go_by_the_formulas() -> None:
    x = flambeau.from_numpy(_array(2, 33)).requires_grad_()
    assert flambeau.autograd.gradcheck(lambda x: x.softmax(1), x, atol=1e-6)
    assert flambeau.autograd.gradgradcheck(lambda x: x.log_softmax(1), x, atol=1e-6)


def test_what_has_no_kernel_is_left_to_numpy() -> None:
    assert rows.softmax(np.ones((3, 4), ">f4"), 1) is None
    assert rows.softmax(np.ones((3, 4), np.longdouble), 1) is None
    assert rows.softmax(np.ones((3, 0), np.float32), 1) is None
    ones = np.ones((3, 4), np.float32)
    assert rows.softmax_backward(ones, ones.astype(np.float64), 1) is None
    assert rows.softmax(ones, 1) is not None


def test_threads_share_the_rows() -> None:
    x = _array(700, 300).astype(np.float32)
    before = flambeau.get_num_threads()
    try:
        for dim in (0, 1):
            found: list[Any] = []
            for threads in (1, 3):
                flambeau.set_num_threads(threads)
                found.append(rows.softmax(x, dim))
            np.testing.assert_array_equal(found[0], found[1])
    finally:
        flambeau.set_num_threads(before)


def test_numpy_alone_on_request() -> None:
    x = flambeau.from_numpy(_array(30, 300).astype(np.float32))
    with tiers.numpy_only():
        assert tiers.generated("rows") is None
        reference = x.softmax(1)
    assert tiers.generated("rows") is rows
    close(x.softmax(1).numpy(), reference.numpy(), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_cosines(dtype: str) -> None:
    for shape in ((6, 70), (40, 9), (2, 3, 33), (5,)):
        first, second = _array(*shape), _array(*shape, seed=1)
        first.reshape(-1, shape[-1])[0] = 0.0
        got, wanted = (
            T.cosine_similarity(*(T.from_numpy(each).to(getattr(T, dtype)) for each in (first, second)), dim=-1)
            for T in (flambeau, torch)
        )
        close(got.double().numpy(), wanted.double().numpy(), 1e-6 if dtype == "float32" else 1e-15)
    x = flambeau.from_numpy(_array(70)).float()
    assert rows.cosine(x.numpy(), x.numpy(), 0, 1e-8) is not None  # and was asked above
