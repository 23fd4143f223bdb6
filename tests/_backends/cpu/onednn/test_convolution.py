"""Convolutions: which layouts oneDNN is asked for, and the results beside PyTorch's."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn.constants import DIFF_DST, DIFF_SRC, DST, F32, SRC
from flambeau._backends.cpu.onednn.convolution import Geometry
from flambeau._backends.cpu.onednn.library import Unsupported
from tests._backends.cpu.onednn.stand_in import StandIn

module: Any = importlib.import_module("flambeau._backends.cpu.onednn.convolution")

ONCE = Geometry((1, 1), (1, 1), (1, 1), 1)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


# ----- layouts ------------------------------------------------------------------------------------------------------


def asked_for(stand_in: StandIn, name: str) -> list[list[tuple[Any, Any]]]:
    """Shape and strides of the layouts in each question for a primitive."""
    questions = [each for each in stand_in.asked if each[0] == f"{name}_primitive_desc_create"]
    numbers = [[each for each in question if isinstance(each, int)] for question in questions]
    return [[stand_in.layouts[each][:2] for each in each_of if each in stand_in.layouts] for each_of in numbers]


def test_channels_last_is_asked_for_as_it_is(stand_in: StandIn) -> None:
    onednn.convolution(zeros(2, 3, 5, 5), zeros(4, 3, 3, 3), None, ONCE, last=True)
    assert asked_for(stand_in, "convolution_forward") == [
        [((2, 3, 5, 5), (75, 1, 15, 3)), ((4, 3, 3, 3), None), ((2, 4, 5, 5), (100, 1, 20, 4))]
    ]


def test_plain_layout_is_left_to_the_primitive(stand_in: StandIn) -> None:
    onednn.convolution(zeros(2, 3, 5, 5), zeros(4, 3, 3, 3), None, ONCE)
    assert asked_for(stand_in, "convolution_forward") == [
        [((2, 3, 5, 5), None), ((4, 3, 3, 3), None), ((2, 4, 5, 5), None)]
    ]


def test_other_layout_is_tried_where_there_is_only_reference_code(stand_in: StandIn) -> None:
    stand_in.implementation = b"ref:any"
    with pytest.raises(Unsupported, match="reference"):
        onednn.convolution(zeros(2, 3, 5, 5), zeros(4, 3, 3, 3), None, ONCE)
    first, second = asked_for(stand_in, "convolution_forward")
    assert first[0] == ((2, 3, 5, 5), None)
    assert second[0] == ((2, 3, 5, 5), (75, 25, 5, 1))


def test_groups_are_a_dimension_of_the_weights(stand_in: StandIn) -> None:
    onednn.convolution(zeros(2, 4, 5, 5), zeros(6, 2, 3, 3), None, ONCE._replace(groups=2))
    assert asked_for(stand_in, "convolution_forward")[0][1] == ((2, 3, 2, 3, 3), None)
    problem = module._Problem((2, 4, 5, 5), (2, 6, 5, 5), (6, 2, 3, 3), ONCE._replace(groups=2), F32)
    given = module._weights_as_given(problem, (18, 9, 3, 1))
    assert stand_in.layouts[given.value].strides == (54, 18, 9, 3, 1)


def test_transposed_weights_have_outputs_first(stand_in: StandIn) -> None:
    onednn.transposed_convolution(zeros(2, 4, 5, 5), zeros(4, 3, 3, 3), None, ONCE._replace(groups=2), (0, 0))
    source, weights, result = asked_for(stand_in, "deconvolution_forward")[0]
    assert (source, weights, result) == (((2, 4, 5, 5), None), ((2, 3, 2, 3, 3), None), ((2, 6, 5, 5), None))


@pytest.mark.parametrize(
    ("size", "stride", "padding", "after"), [(5, 1, 1, 1), (6, 2, 1, 0), (7, 3, 0, -1), (5, 2, 0, 0)]
)
def test_padding_at_the_end_covers_the_last_window_and_no_more(
    size: int, stride: int, padding: int, after: int
) -> None:
    geometry = Geometry((stride,), (padding,), (1,), 1)
    count = (size + 2 * padding - 3) // stride + 1
    problem = module._Problem((1, 1, size), (1, 1, count), (1, 1, 3), geometry, F32)
    strides, dilation, before, found = (each[0] for each in module._movement(problem))
    assert (strides, dilation, before, found) == (stride, 0, padding, after)


@pytest.mark.parametrize(
    ("input", "weight", "geometry"),
    [
        (zeros(2, 3), zeros(4, 3), Geometry((), (), (), 1)),
        (zeros(1, 1, 2, 2, 2, 2), zeros(1, 1, 1, 1, 1, 1), Geometry((1,) * 4, (0,) * 4, (1,) * 4, 1)),
        (zeros(0, 3, 5, 5), zeros(4, 3, 3, 3), ONCE),
        (zeros(2, 3, 5, 5), zeros(4, 3, 9, 9), ONCE),
        (zeros(2, 3, 5, 5), zeros(4, 3, 3, 3), ONCE._replace(padding=(-1, 0))),
        (zeros(2, 3, 5, 5).astype(np.float64), zeros(4, 3, 3, 3).astype(np.float64), ONCE),
        (zeros(2, 3, 5, 5), zeros(4, 3, 3, 3).astype(np.float16), ONCE),
    ],
)
def test_what_is_left_to_other_kernels(stand_in: StandIn, input: Any, weight: Any, geometry: Geometry) -> None:
    with pytest.raises(Unsupported):
        onednn.convolution(input, weight, None, geometry)
    assert stand_in.executed == []


def test_shapes_that_do_not_fit(stand_in: StandIn) -> None:
    input, weight, grad = zeros(2, 3, 5, 5), zeros(4, 3, 3, 3), zeros(2, 4, 5, 5)
    calls = [
        lambda: onednn.convolution(input, zeros(4, 2, 3, 3), None, ONCE),
        lambda: onednn.convolution(input, weight, zeros(3), ONCE),
        lambda: onednn.convolution(input, weight, None, ONCE._replace(stride=(1,))),
        lambda: onednn.convolution(input, weight, None, ONCE._replace(stride=(0, 1))),
        lambda: onednn.convolution(input, weight, None, ONCE._replace(groups=2)),
        lambda: onednn.convolution_input_gradient(grad, weight, (2, 3, 6, 5), ONCE),
        lambda: onednn.convolution_input_gradient(grad, weight, (2, 2, 5, 5), ONCE),
        lambda: onednn.convolution_weight_gradient(grad, input, (4, 3, 1, 3), ONCE),
        lambda: onednn.convolution_weight_gradient(zeros(1, 4, 5, 5), input, (4, 3, 3, 3), ONCE),
        lambda: onednn.transposed_convolution(input, weight, None, ONCE, (0, 0)),
        lambda: onednn.transposed_input_gradient(grad, zeros(3, 4, 3, 3), (2, 3, 4, 5), ONCE),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"fit|belong|expected|must be positive"):
            call()
    assert stand_in.executed == []


# ----- results ------------------------------------------------------------------------------------------------------


def assert_close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Compare with respect to the largest element: sums are rounded in other orders."""
    expected = expected.detach().float().numpy()
    assert found.shape == expected.shape
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=0, atol=tolerance * largest)


def in_layout(tensor: Any, last: bool) -> Any:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.ndim]) if last else tensor


CASES = [
    # inputs, outputs, groups, stride, padding, dilation, bias, channels last
    (6, 12, 1, 1, 1, 1, True, False),
    (6, 12, 2, 2, 1, 1, False, True),
    (6, 12, 6, 1, 1, 2, True, True),
    (16, 32, 1, 1, 1, 1, True, True),
    (16, 32, 1, 2, 0, 1, True, False),
    (16, 16, 16, 2, 1, 1, True, True),
    (3, 16, 1, 2, 1, 1, True, False),
    (1, 8, 1, 1, 0, 1, True, True),
]


@pytest.mark.parametrize(("rank", "case"), list(itertools.product((1, 2, 3), CASES)))
def test_convolution_and_its_gradients(dnn: Any, rank: int, case: Any) -> None:
    inputs, outputs, groups, stride, padding, dilation, with_bias, last = case
    last = last and rank > 1
    torch.manual_seed(0)
    input = in_layout(torch.randn(2, inputs, *[8] * rank), last).requires_grad_()
    weight = in_layout(torch.randn(outputs, inputs // groups, *[3] * rank), last).requires_grad_()
    bias = torch.randn(outputs, requires_grad=True) if with_bias else None
    function = getattr(torch.nn.functional, f"conv{rank}d")
    result = function(input, weight, bias, stride, padding, dilation, groups)
    grad = in_layout(torch.randn(result.shape), last)
    of_input, of_weight, *of_bias = torch.autograd.grad(
        result, [each for each in (input, weight, bias) if each is not None], grad
    )
    geometry = Geometry(*((each,) * rank for each in (stride, padding, dilation)), groups)
    x, w, g = (each.detach().numpy() for each in (input, weight, grad))
    b = None if bias is None else bias.detach().numpy()
    found = dnn.convolution(x, w, b, geometry, last)
    assert_close(found, result)
    assert (found.strides[1] == 4) == last
    assert_close(dnn.convolution_input_gradient(g, w, x.shape, geometry, last), of_input)
    found, found_bias = dnn.convolution_weight_gradient(g, x, w.shape, geometry, with_bias, last)
    assert_close(found, of_weight)
    assert (found_bias is None) == (bias is None)
    if bias is not None:
        assert_close(found_bias, of_bias[0])


@pytest.mark.parametrize(("rank", "case"), list(itertools.product((1, 2, 3), CASES)))
def test_transposed_convolution_and_its_gradients(dnn: Any, rank: int, case: Any) -> None:
    inputs, outputs, groups, stride, padding, dilation, with_bias, last = case
    last = last and rank > 1
    more = stride - 1
    torch.manual_seed(0)
    input = in_layout(torch.randn(2, inputs, *[6] * rank), last).requires_grad_()
    weight = torch.randn(inputs, outputs // groups, *[3] * rank, requires_grad=True)
    bias = torch.randn(outputs) if with_bias else None
    function = getattr(torch.nn.functional, f"conv_transpose{rank}d")
    result = function(input, weight, bias, stride, padding, more, groups, dilation)
    grad = in_layout(torch.randn(result.shape), last)
    of_input, of_weight = torch.autograd.grad(result, [input, weight], grad)
    geometry = Geometry(*((each,) * rank for each in (stride, padding, dilation)), groups)
    x, w, g = (each.detach().numpy() for each in (input, weight, grad))
    b = None if bias is None else bias.numpy()
    assert_close(dnn.transposed_convolution(x, w, b, geometry, (more,) * rank, last), result)
    assert_close(dnn.transposed_input_gradient(g, w, x.shape, geometry, last), of_input)
    assert_close(dnn.transposed_weight_gradient(g, x, w.shape, geometry, last), of_weight)


def test_odd_strides_and_bias(dnn: Any) -> None:
    torch.manual_seed(0)
    input, weight, bias = torch.randn(4, 12, 9, 9), torch.randn(8, 9, 3, 3), torch.randn(16)
    input, weight, bias = input[::2, 3:, :, ::2], weight.flip(0)[:, :], bias[::2]
    geometry = Geometry((1, 2), (0, 2), (1, 1), 1)
    expected = torch.nn.functional.conv2d(input, weight, bias, (1, 2), (0, 2))
    found = dnn.convolution(input.numpy(), weight.numpy()[::-1][::-1], bias.numpy(), geometry)
    assert_close(found, expected)


def test_network_in_channels_last_reorders_no_activations(dnn: Any) -> None:
    input, weight = np.ones((2, 32, 8, 8), np.float32), np.ones((32, 32, 3, 3), np.float32)
    strides = (32 * 64, 1, 32 * 8, 32)
    problem = module._Problem(input.shape, input.shape, weight.shape, ONCE, F32)
    activations = {SRC, DST, DIFF_SRC, DIFF_DST}
    plain = (288, 9, 3, 1)
    for found in (
        module._correlation(problem, strides, plain, True, True),
        module._input_gradient(problem, strides, plain, True),
        module._weight_gradient(problem, strides, strides, True, True),
    ):
        assert not activations & {*found.reordered}


def test_packed_weights_follow_the_version(dnn: Any) -> None:
    input, weight = np.ones((1, 16, 4, 4), np.float32), np.ones((16, 16, 1, 1), np.float32)
    geometry = Geometry((1, 1), (0, 0), (1, 1), 1)
    packed = dnn.PackedWeights()
    for version, factor in enumerate((1, 2, 3)):
        weight[...] = factor
        for _ in range(2):
            found = dnn.convolution(input, weight, None, geometry, True, packed.at(version))
            np.testing.assert_array_equal(found, np.full((1, 16, 4, 4), 16.0 * factor))


@pytest.mark.parametrize("last", [False, True])
def test_bfloat16(dnn: Any, last: bool) -> None:
    torch.manual_seed(0)
    input, weight = torch.randn(2, 16, 8, 8).bfloat16(), torch.randn(32, 16, 3, 3).bfloat16()
    bias, grad = torch.randn(32).bfloat16(), torch.randn(2, 32, 8, 8).bfloat16()
    input, grad = in_layout(input, last), in_layout(grad, last)
    x, w, b, g = (each.view(torch.int16).numpy().view(ml_dtypes.bfloat16) for each in (input, weight, bias, grad))
    try:
        found = [dnn.convolution(x, w, b, ONCE, last), dnn.convolution_input_gradient(g, w, x.shape, ONCE, last)]
        found += dnn.convolution_weight_gradient(g, x, w.shape, ONCE, True, last)
    except Unsupported as reason:
        pytest.skip(str(reason))
    leaves = [each.float().requires_grad_() for each in (input, weight, bias)]
    result = torch.nn.functional.conv2d(*leaves, padding=1)
    for array, expected in zip(found, [result, *torch.autograd.grad(result, leaves, grad.float())], strict=True):
        assert array.dtype == ml_dtypes.bfloat16
        assert_close(array, expected, 1e-2)
