"""Pooling: what is left to other kernels, indices, and the results beside PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flambeau._backends.cpu.onednn import pooling
from flambeau._backends.cpu.onednn.library import Unsupported
from flambeau._backends.cpu.onednn.pooling import Window
from tests._backends.cpu.onednn.stand_in import StandIn

CASES = list(itertools.product((1, 2, 3), ((2, 1, 0), (2, 2, 1), (3, 2, 1), (3, 1, 0)), (False, True), (False, True)))


def window_of(rank: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> Window:
    return Window(*((each,) * rank for each in (kernel, stride, padding, dilation)))


def in_layout(tensor: Any, last: bool) -> Any:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.ndim]) if last else tensor


# ----- without the library ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rank", "dilation"), [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_indices_count_positions_in_the_plane(rank: int, dilation: int) -> None:
    torch.manual_seed(0)
    input = torch.randn(2, 3, *range(7, 7 + rank))
    window = window_of(rank, 3, 2, 1, dilation)
    _, expected = getattr(torch.nn.functional, f"max_pool{rank}d")(input, 3, 2, 1, dilation, return_indices=True)
    # What oneDNN notes: the place within the window of each maximum, found here from the windows themselves.
    padded = np.pad(input.numpy(), [(0, 0), (0, 0), *[(1, 9)] * rank], constant_values=-np.inf)
    workspace = np.zeros(expected.shape, np.uint8)
    for at in np.ndindex(*expected.shape):
        places = tuple(slice(2 * start, 2 * start + 2 * dilation + 1, dilation) for start in at[2:])
        workspace[at] = padded[(*at[:2], *places)].argmax()
    np.testing.assert_array_equal(pooling.window_indices(workspace, input.shape, window), expected.numpy())


def test_means_of_windows_beyond_the_padding_are_left_to_other_kernels(stand_in: StandIn) -> None:
    input = np.zeros((1, 1, 5), np.float32)
    window = window_of(1, 2, 2, 0)
    pooling.average_pool(input, window, (2,))
    pooling.average_pool(input, window, (3,), include_padding=False)
    with pytest.raises(Unsupported, match="beyond the padding"):
        pooling.average_pool(input, window, (3,))
    with pytest.raises(Unsupported, match="beyond the padding"):
        pooling.average_pool_backward(np.zeros((1, 1, 3), np.float32), (1, 1, 5), window)


def test_windows_outside_of_the_input_are_left_to_other_kernels(stand_in: StandIn) -> None:
    with pytest.raises(Unsupported, match="outside"):
        pooling.max_pool(np.zeros((1, 1, 3), np.float32), Window((2,), (1,), (1,), (5,)), (1,))


def test_other_dtypes_and_ranks_are_left_to_other_kernels(stand_in: StandIn) -> None:
    with pytest.raises(Unsupported, match="no data type"):
        pooling.max_pool(np.zeros((1, 1, 3)), window_of(1, 2, 1, 0), (2,))
    with pytest.raises(Unsupported, match="one, two or three"):
        pooling.average_pool(np.zeros((1, 1), np.float32), window_of(0, 2, 1, 0), ())
    with pytest.raises(Unsupported, match="empty"):
        pooling.average_pool(np.zeros((0, 1, 3), np.float32), window_of(1, 2, 1, 0), (2,))


def test_windows_that_do_not_fit(stand_in: StandIn) -> None:
    input = np.zeros((1, 1, 3), np.float32)
    calls: list[Callable[[], object]] = [
        lambda: pooling.max_pool(input, window_of(2, 2, 1, 0), (2,)),
        lambda: pooling.max_pool(input, window_of(1, 2, 0, 0), (2,)),
        lambda: pooling.max_pool(input, window_of(1, 2, 1, -1), (2,)),
        lambda: pooling.max_pool(input, window_of(1, 2, 1, 0), (9,)),
        lambda: pooling.average_pool(input, window_of(1, 2, 1, 0, 2), (1,)),
        lambda: pooling.max_pool_backward(input, np.zeros((1, 1, 2), np.uint8), (1, 1, 4), window_of(1, 2, 1, 0)),
        lambda: pooling.max_pool_backward(input, np.zeros((1, 1, 3), np.int64), (1, 1, 4), window_of(1, 2, 1, 0)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected|must be|more than|have no dilation|is not one for"):
            call()
    assert stand_in.executed == []


# ----- results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rank", "numbers", "ceil", "last"), [each for each in CASES if each[0] > 1 or not each[3]])
def test_maxima(dnn: Any, rank: int, numbers: tuple[int, int, int], ceil: bool, last: bool) -> None:
    torch.manual_seed(0)
    input = in_layout(torch.randn(2, 16, *[8] * rank), last).requires_grad_()
    function = getattr(torch.nn.functional, f"max_pool{rank}d")
    result, indices = function(input, *numbers, ceil_mode=ceil, return_indices=True)
    grad = in_layout(torch.randn(result.shape), last)
    (of_input,) = torch.autograd.grad(result, input, grad)
    window, sizes = window_of(rank, *numbers), result.shape[2:]
    x = input.detach().numpy()
    found, workspace = dnn.pooling.max_pool(x, window, sizes, True, last)
    np.testing.assert_array_equal(found, result.detach().numpy())
    np.testing.assert_array_equal(dnn.pooling.window_indices(workspace, x.shape, window), indices.numpy())
    np.testing.assert_array_equal(dnn.pooling.max_pool(x, window, sizes, False, last)[0], found)
    found = dnn.pooling.max_pool_backward(grad.numpy(), workspace, x.shape, window, last)
    np.testing.assert_allclose(found, of_input.numpy(), rtol=1e-5, atol=1e-5)
    assert (found.strides[1] == 4) == last


@pytest.mark.parametrize(("rank", "numbers", "ceil", "last"), [each for each in CASES if each[0] > 1 or not each[3]])
@pytest.mark.parametrize("include", [False, True])
def test_means(dnn: Any, rank: int, numbers: tuple[int, int, int], ceil: bool, last: bool, include: bool) -> None:
    torch.manual_seed(0)
    input = in_layout(torch.randn(2, 5, *[8] * rank), last).requires_grad_()
    result = getattr(torch.nn.functional, f"avg_pool{rank}d")(input, *numbers, ceil, include)
    grad = in_layout(torch.randn(result.shape), last)
    (of_input,) = torch.autograd.grad(result, input, grad)
    window = window_of(rank, *numbers)
    if include and ceil and numbers == (3, 2, 1):  # the last windows reach beyond the padding
        with pytest.raises(Unsupported, match="beyond the padding"):
            dnn.pooling.average_pool(input.detach().numpy(), window, result.shape[2:], include, last)
        return
    found = dnn.pooling.average_pool(input.detach().numpy(), window, result.shape[2:], include, last)
    np.testing.assert_allclose(found, result.detach().numpy(), rtol=1e-5, atol=1e-6)
    found = dnn.pooling.average_pool_backward(grad.numpy(), input.shape, window, include, last)
    np.testing.assert_allclose(found, of_input.numpy(), rtol=1e-5, atol=1e-6)


def test_large_windows_count_beyond_a_byte(dnn: Any) -> None:
    input = np.random.default_rng(0).standard_normal((1, 2, 30, 30)).astype(np.float32)
    window = window_of(2, 17, 3, 0)
    expected, indices = torch.nn.functional.max_pool2d(torch.from_numpy(input), 17, 3, return_indices=True)
    found, workspace = dnn.pooling.max_pool(input, window, expected.shape[2:])
    assert workspace.dtype == np.int32
    np.testing.assert_array_equal(found, expected.numpy())
    np.testing.assert_array_equal(dnn.pooling.window_indices(workspace, input.shape, window), indices.numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1023, 1024, -1])
def test_maxima_of_elements_that_are_not_finite_are_left_to_other_kernels(dnn: Any, value: float, place: int) -> None:
    input = np.ones((1, 3, 25, 25), np.float32)
    input.reshape(-1)[place] = value
    with pytest.raises(Unsupported, match="NaN and minus infinity"):
        dnn.pooling.max_pool(input, window_of(2, 2, 2, 0), (12, 12))
