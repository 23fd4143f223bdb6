"""Generated normalisations beside NumPy's and PyTorch's."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.reductions import norms

from .row_cases import TOLERANCE, close, compare, results

DTYPES = ["float32", "float64", "float16", "bfloat16"]


def _array(*shape: int, seed: int = 0, offset: float = 0.5) -> Any:
    return np.random.default_rng(seed).standard_normal(shape) + offset


def _layer_norm(T: Any, x: Any, weight: Any, bias: Any) -> Any:
    return T.nn.functional.layer_norm(x, x.shape[1:], weight, bias)


def _rms_norm(T: Any, x: Any, weight: Any) -> Any:
    return T.nn.functional.rms_norm(x, x.shape[1:], weight)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(dtype: str) -> None:
    for shape in ((300, 37), (3, 1500), (4, 3), (9, 2, 10)):
        inner = shape[1:]
        compare(dtype, _layer_norm, [_array(*shape), _array(*inner, seed=1), _array(*inner, seed=2)], tolerance=4)


@pytest.mark.parametrize("given", [(True, False), (False, True), (False, False)])
def test_layer_norm_with_fewer_parameters(given: tuple[bool, bool]) -> None:
    parameters = [_array(21, seed=1) if each else None for each in given]
    compare("float32", _layer_norm, [_array(40, 21), *parameters], tolerance=4)


def test_half_precision_with_a_bias_of_float32_alone() -> None:
    """PyTorch has no derivative for this mixture."""
    T = flambeau
    x, bias = _array(6, 4, 10).astype(np.float32), _array(4, seed=1).astype(np.float32)
    found = []
    for way in (nullcontext, tiers.numpy_only):
        half, shift = T.from_numpy(x).to(T.bfloat16).requires_grad_(), T.from_numpy(bias).requires_grad_()
        wide = T.ones(10, requires_grad=True)
        with way():
            for result in (
                T.nn.functional.layer_norm(half, (10,), None, wide),
                T.nn.functional.batch_norm(half, None, None, None, shift, True),
                T.nn.functional.group_norm(half, 2, None, shift),
            ):
                result.sum().backward()
        found.append([each.grad for each in (half, shift, wide)])
    for got, wanted in zip(*found, strict=True):
        assert got.dtype is wanted.dtype
        close(got.double().numpy(), wanted.double().numpy(), 2e-2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(dtype: str) -> None:
    for shape in ((130, 37), (2, 1500), (4, 3), (9, 2, 10)):
        compare(dtype, _rms_norm, [_array(*shape), _array(*shape[1:], seed=1)], tolerance=8)
    compare(dtype, _rms_norm, [_array(5, 40), None], tolerance=8)


def _batch_norm(T: Any, x: Any, weight: Any, bias: Any) -> Any:
    return T.nn.functional.batch_norm(x, None, None, weight, bias, True)


def _batch_norm_last(T: Any, x: Any, weight: Any, bias: Any) -> Any:
    last = T.channels_last if x.dim() == 4 else T.channels_last_3d
    result = _batch_norm(T, x.to(memory_format=last), weight, bias)
    assert result.is_contiguous(memory_format=last)
    return result


def _in_evaluation(T: Any, x: Any, weight: Any, bias: Any) -> Any:
    mean = T.linspace(-1, 1, x.shape[1]).to(x.dtype)
    variance = T.linspace(0.5, 2, x.shape[1]).to(x.dtype)
    return T.nn.functional.batch_norm(x, mean, variance, weight, bias, False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("call", [_batch_norm, _in_evaluation])
def test_batch_norm(dtype: str, call: Any) -> None:
    for shape in ((6, 5, 11, 7), (3, 4, 2), (2, 3, 2, 3, 4), (40, 19), (300, 70)):
        parameters = [_array(shape[1], seed=seed) for seed in (1, 2)]
        compare(dtype, call, [_array(*shape), *parameters], tolerance=8)


def test_batch_norm_of_bfloat16_rounds_as_pytorch_does() -> None:
    arrays = [_array(6, 5, 11, 7), _array(5, seed=1), _array(5, seed=2)]
    compare("bfloat16", _batch_norm, arrays)
    compare("bfloat16", _in_evaluation, arrays)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batch_norm_with_channels_last(dtype: str) -> None:
    compare(dtype, _batch_norm_last, [_array(3, 21, 4, 5), _array(21, seed=1), _array(21, seed=2)], tolerance=8)
    compare(dtype, _batch_norm_last, [_array(2, 3, 4, 2, 3), None, None], tolerance=8)


@pytest.mark.parametrize("given", [(True, False), (False, True), (False, False)])
def test_batch_norm_with_fewer_parameters(given: tuple[bool, bool]) -> None:
    for shape in ((4, 3, 20), (30, 6)):
        parameters = [_array(shape[1], seed=1) if each else None for each in given]
        compare("float32", _batch_norm, [_array(*shape), *parameters], tolerance=8)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_running_statistics(dtype: str) -> None:
    x = _array(5, 4, 6).astype(np.float32)
    found = []
    for T in (flambeau, torch):
        layer = T.nn.BatchNorm1d(4, momentum=0.3).to(getattr(T, dtype))
        for _ in range(2):
            layer(T.from_numpy(x).to(getattr(T, dtype)))
        found.append([each.double().numpy() for each in (layer.running_mean, layer.running_var)])
    for got, wanted in zip(*found, strict=True):
        close(got, wanted, TOLERANCE[dtype])


def test_half_precision_with_parameters_of_float32() -> None:
    x = _array(8, 6, 9).astype(np.float32)
    found = []
    for T in (flambeau, torch):
        half = T.from_numpy(x).to(T.bfloat16).requires_grad_()
        batch, layer, group = T.nn.BatchNorm1d(6), T.nn.LayerNorm(9), T.nn.GroupNorm(2, 6)
        for each in (batch, layer, group):
            half = each(half)
        half.sum().backward()
        found.append([each.detach().double().numpy() for each in (half, batch.weight.grad, layer.bias.grad)])
    for got, wanted in zip(*found, strict=True):
        close(got, wanted, 5e-2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_group_norm(dtype: str) -> None:
    for shape, groups in (((3, 6, 5, 7), 2), ((2, 4, 30), 4), ((5, 12), 3), ((1, 3, 2), 1)):

        def call(T: Any, x: Any, weight: Any, bias: Any, groups: int = groups) -> Any:
            return T.nn.functional.group_norm(x, groups, weight, bias)

        compare(dtype, call, [_array(*shape), _array(shape[1], seed=1), _array(shape[1], seed=2)], tolerance=8)
        if dtype == "float32":
            compare(dtype, call, [_array(*shape), None, None], tolerance=8)


def test_group_norm_with_channels_last() -> None:
    def call(T: Any, x: Any, weight: Any, bias: Any) -> Any:
        result = T.nn.functional.group_norm(x.to(memory_format=T.channels_last), 2, weight, bias)
        assert result.is_contiguous(memory_format=T.channels_last)
        return result

    compare("float32", call, [_array(3, 6, 5, 7), _array(6, seed=1), _array(6, seed=2)], tolerance=8)


@pytest.mark.parametrize("call", [_layer_norm, _batch_norm])
def test_far_from_zero(call: Any) -> None:
    """The variance is that of differences to the mean: an offset does not eat it up. The mean itself is rounded."""
    x = np.random.default_rng(0).integers(-8, 8, (64, 64)) / 8 + 4096.0
    for shape in ((64, 64), (16, 4, 64)):
        arrays = [x.reshape(shape), None, None]
        got = results(flambeau, "float32", call, arrays)
        exact = results(torch, "float64", call, arrays)
        assert np.abs(got[0] - exact[0]).max() < 2 * np.spacing(np.float32(4096)) / 2 / x.std()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan(special: float) -> None:
    x = _array(6, 5, 7).astype(np.float32)
    x[2, 3, 1] = special
    calls: list[Any] = [
        lambda T, x: T.nn.functional.layer_norm(x, (7,)),
        lambda T, x: T.nn.functional.rms_norm(x, (7,)),
        lambda T, x: T.nn.functional.group_norm(x, 5),
        lambda T, x: T.nn.functional.batch_norm(x, None, None, training=True),
    ]
    for call in calls:
        got = call(flambeau, flambeau.from_numpy(x)).numpy()
        close(got, call(torch, torch.from_numpy(x)).numpy(), 1e-5)


def test_only_the_gradients_that_are_needed() -> None:
    x, weight = (flambeau.from_numpy(each) for each in (_array(40, 9), _array(9, seed=1)))
    grad = _array(40, 9, seed=2)
    wanted = results(torch, "float64", lambda T, x, w: _layer_norm(T, x, w, None), [x.numpy(), weight.numpy()], grad)
    for number, leaf in enumerate((x, weight)):
        leaf.requires_grad_()
        result = _layer_norm(flambeau, x, weight, None)
        (found,) = flambeau.autograd.grad(result, leaf, flambeau.from_numpy(grad))
        close(found.numpy(), wanted[number + 1], 1e-12)
        leaf.requires_grad_(False)


def test_second_derivatives_go_by_the_formulas() -> None:
    functional = flambeau.nn.functional
    x, weight = (flambeau.from_numpy(each).requires_grad_() for each in (_array(3, 2, 4), _array(4, seed=1)))
    scale = flambeau.from_numpy(_array(2, seed=2)).requires_grad_()
    calls = [
        (lambda x, w: functional.layer_norm(x, (4,), w), weight),
        (lambda x, w: functional.rms_norm(x, (4,), w), weight),
        (lambda x, w: functional.batch_norm(x, None, None, w, training=True), scale),
        (lambda x, w: functional.group_norm(x, 1, w), scale),
    ]
    for call, parameter in calls:
        assert flambeau.autograd.gradcheck(call, (x, parameter), atol=1e-6)
        assert flambeau.autograd.gradgradcheck(call, (x, parameter), atol=1e-6)


def test_what_has_no_kernel_is_left_to_numpy() -> None:
    ones = np.ones((4, 6), np.float32)
    assert norms.layer_norm(ones[:0], (6,), None, None, 1e-5, ones.dtype) is None
    assert norms.layer_norm(ones.astype(np.longdouble), (6,), None, None, 1e-5, ones.dtype) is None
    assert norms.layer_norm(ones, (6,), None, None, 1e-5, ones.dtype) is not None
    frozen = np.ones(6, np.float32)
    frozen.flags.writeable = False
    assert norms.move_running(frozen, frozen, frozen, frozen, 0.1, 24) is None


def test_threads_change_nothing() -> None:
    x, weight = _array(900, 128).astype(np.float32), _array(128, seed=1).astype(np.float32)
    before = flambeau.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            flambeau.set_num_threads(threads)
            result, mean, rstd = norms.layer_norm(x, (128,), weight, weight, 1e-5, x.dtype)  # type: ignore[misc]
            gradients = norms.layer_norm_backward([x, None, None], (True,) * 3, x, (128,), weight, weight, mean, rstd)
            batch = norms.batch_norm(x, weight, weight, None, None, True, 1e-5, x.dtype)
            found.append([result, *gradients, *batch])  # type: ignore[misc]
    finally:
        flambeau.set_num_threads(before)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
