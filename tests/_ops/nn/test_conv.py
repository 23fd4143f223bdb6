"""Convolutions, transposed convolutions, and their first and second derivatives, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau
from flambeau._ops.nn import conv_kernels

from ...support.differential import differential, outcome, supported, warned

CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1d": ("conv1d", (2, 3, 7), (4, 3, 3), {}),
    "1d dilated": ("conv1d", (2, 4, 9), (4, 2, 3), {"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    "2d": ("conv2d", (2, 3, 5, 6), (4, 3, 2, 3), {"stride": (2, 1), "padding": (1, 0)}),
    "pointwise": ("conv2d", (2, 3, 8, 9), (4, 3, 1, 1), {}),
    "strided pointwise": ("conv2d", (2, 3, 5, 4), (4, 3, 1, 1), {"stride": 2}),
    "rest": ("conv2d", (1, 2, 8, 7), (2, 2, 3, 3), {"stride": 3}),
    "depthwise": ("conv2d", (2, 4, 5, 5), (8, 1, 3, 3), {"padding": 1, "groups": 4}),
    "unbatched": ("conv2d", (3, 5, 5), (2, 3, 3, 3), {}),
    "same": ("conv2d", (1, 2, 5, 5), (2, 2, 3, 3), {"padding": "same", "dilation": 2}),
    "same, even": ("conv2d", (1, 2, 5, 5), (2, 2, 2, 4), {"padding": "same"}),
    "valid": ("conv1d", (2, 3, 7), (4, 3, 3), {"padding": "valid"}),
    "one place": ("conv2d", (2, 3, 1, 1), (4, 3, 3, 3), {"padding": 1}),
    "four places": ("conv2d", (2, 3, 2, 2), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    "less than a kernel": ("conv2d", (2, 4, 2, 3), (6, 2, 5, 7), {"padding": (2, 3), "groups": 2}),
    "less than a dilated kernel": ("conv2d", (1, 2, 2, 2), (2, 2, 3, 3), {"padding": 2, "dilation": 2}),
    "3d": ("conv3d", (2, 2, 4, 5, 4), (2, 1, 2, 3, 2), {"padding": (0, 1, 1), "groups": 2}),
    "empty batch": ("conv2d", (0, 3, 5, 5), (2, 3, 3, 3), {}),
    "transposed 1d": ("conv_transpose1d", (2, 3, 5), (3, 2, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed 2d": ("conv_transpose2d", (2, 4, 4, 3), (4, 2, 3, 2), {"stride": (2, 3), "groups": 2, "padding": 1}),
    "transposed dilated": ("conv_transpose2d", (1, 2, 4, 4), (2, 3, 2, 2), {"dilation": 3, "output_padding": 2}),
    "transposed depthwise": ("conv_transpose2d", (1, 4, 3, 3), (4, 1, 2, 2), {"groups": 4}),
    "transposed unbatched": ("conv_transpose2d", (2, 3, 3), (2, 3, 2, 2), {}),
    "transposed empty": ("conv_transpose2d", (0, 2, 3, 3), (2, 3, 2, 2), {}),
    "transposed to one place": ("conv_transpose2d", (1, 2, 1, 1), (2, 3, 3, 3), {"padding": 1}),
    "transposed 3d": (
        "conv_transpose3d",
        (1, 2, 3, 2, 3),
        (2, 2, 2, 2, 2),
        {"stride": (1, 2, 2), "padding": (1, 0, 1)},
    ),
}


def numbers(T: Any, *shape: int, dtype: str = "float64", shift: float = 0.0) -> Any:
    """Numbers without a pattern; small integers for integer dtypes."""
    values = (T.arange(math.prod(shape), dtype=T.float64) * 1.7 + shift).sin()
    if "int" in dtype:
        values = values * 4
    if "complex" in dtype:
        values = T.complex(values, values.flip(0) - 0.5)
    return values.reshape(shape).to(getattr(T, dtype))


def operands(T: Any, case: str, dtype: str = "float64") -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    name, input, weight, options = CASES[case]
    outputs = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
    bias = numbers(T, outputs, dtype=dtype, shift=2.0)
    made = numbers(T, *input, dtype=dtype), numbers(T, *weight, dtype=dtype, shift=1.0), bias
    return getattr(T.nn.functional, name), *made, options


def weighted(T: Any, value: Any) -> Any:
    """A number that depends on every element differently."""
    return (value * numbers(T, *value.shape, dtype=str(value.dtype).removeprefix("torch."), shift=0.3)).abs().sum()


@pytest.mark.parametrize("case", CASES)
@differential
def test_values_and_derivatives(T: Any, case: str) -> Any:
    op, *tensors, options = operands(T, case)
    tensors = [each.requires_grad_() for each in tensors]
    result = op(*tensors, **options)
    grads = T.autograd.grad((result**2).sum(), tensors, create_graph=True)
    second = T.autograd.grad(sum((each**3).sum() for each in grads), tensors)
    return (
        result,
        [each.grad_fn.name() for each in grads],
        [each.detach() for each in grads],
        [each.contiguous() for each in second],
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("case", ["1d", "2d", "depthwise", "3d", "transposed 2d", "transposed 3d"])
@differential(tolerance=3e-6)
def test_dtypes(T: Any, case: str, dtype: str) -> Any:
    # Integers as floats: PyTorch rounds half-precision numbers several times, and these need no rounding.
    source = "int8" if dtype.startswith(("float", "bfloat")) else "float64"
    op, *tensors, options = operands(T, case, dtype if "complex" in dtype else source)
    if dtype.startswith("u"):
        tensors = [each.abs() for each in tensors]
    input, weight, bias = (each.to(getattr(T, dtype)) for each in tensors)
    return supported(lambda: op(input, weight, bias, **options)), supported(lambda: op(input, weight, **options))


@pytest.mark.parametrize("case", ["1d", "2d", "transposed 2d", "same, even"])
@differential
def test_complex_derivatives(T: Any, case: str) -> Any:
    op, *tensors, options = operands(T, case, "complex128")
    tensors = [each.requires_grad_() for each in tensors]
    result = op(*tensors, **options)
    grads = T.autograd.grad(weighted(T, result), tensors, create_graph=True)
    second = T.autograd.grad(sum(weighted(T, each) for each in grads), tensors)
    return result, [each.detach() for each in grads], second


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize("shapes", [((4, 24, 1, 1), 40, 1), ((1, 7, 1, 1), 300, 1), ((3, 5, 1, 1), 6, 3)])
@differential(tolerance=1e-5)
def test_images_of_one_element_are_rows(T: Any, shapes: tuple[Any, int, int], name: str) -> Any:
    """They are multiplied as matrices in float32: values, gradients and strides are those of a convolution."""
    size, outputs, kernel = shapes
    given = (size[1], outputs) if "transpose" in name else (outputs, size[1])
    tensors = [
        numbers(T, *each, dtype="float32", shift=shift).requires_grad_()
        for shift, each in enumerate([size, (*given, kernel, kernel), (outputs,)])
    ]
    result = getattr(T.nn.functional, name)(*tensors, padding=kernel // 2)
    grads = T.autograd.grad((result**2).sum(), tensors)
    return result, result.stride(), *grads, [each.stride() for each in grads]


@pytest.mark.parametrize("case", ["2d", "depthwise", "transposed 2d"])
@differential
def test_forward_mode(T: Any, case: str) -> Any:
    op, input, weight, bias, options = operands(T, case)
    tangents = [T.ones_like(input), numbers(T, *weight.shape, shift=3.0), T.ones_like(bias)]
    with T.autograd.forward_ad.dual_level():
        duals = [T.autograd.forward_ad.make_dual(*pair) for pair in zip((input, weight, bias), tangents, strict=True)]
        result = T.autograd.forward_ad.unpack_dual(op(*duals, **options))
        return result.primal, result.tangent.detach()


@pytest.mark.parametrize("formats", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("case", ["2d", "depthwise", "transposed 2d", "3d", "transposed 3d"])
@differential
def test_channels_last(T: Any, case: str, formats: tuple[bool, bool]) -> Any:
    op, input, weight, _, options = operands(T, case)
    wanted = T.channels_last if input.dim() == 4 else T.channels_last_3d
    if formats[0]:
        input = input.to(memory_format=wanted)
    if formats[1] and weight.shape[1] > 1:
        weight = weight.to(memory_format=wanted)
    tensors = [input.requires_grad_(), weight.requires_grad_()]
    result = op(*tensors, **options)
    return result, [each.contiguous().flatten() for each in T.autograd.grad((result**2).sum(), tensors)]


@differential
def test_many_channels_last(T: Any) -> Any:
    tensors = [numbers(T, 2, 9, 5, 6), numbers(T, 8, 9, 3, 3, shift=1.0)]
    tensors = [each.to(memory_format=T.channels_last).requires_grad_() for each in tensors]
    result = T.conv2d(*tensors, stride=(1, 2), padding=(1, 2))
    return result, T.autograd.grad((result**2).sum(), tensors)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", ["1d dilated", "2d", "depthwise", "3d", "transposed 2d", "transposed dilated"])
def test_blocks(case: str, last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into samples, and into rows of one sample, a convolution is the same."""

    def results(limit: int) -> list[Any]:
        monkeypatch.setattr(conv_kernels, "_BLOCK", limit)
        op, *tensors, options = operands(flambeau, case)
        if last and tensors[0].dim() == 4:
            tensors[0] = tensors[0].to(memory_format=flambeau.channels_last)
        if last:
            monkeypatch.setattr(conv_kernels, "_by_rows", lambda array, channels, groups: True)
        tensors = [each.requires_grad_() for each in tensors]
        result = op(*tensors, **options)
        return [result, *flambeau.autograd.grad((result**2).sum(), tensors)]

    whole = results(1 << 20)
    for limit in (1, 150, 1000):
        for expected, found in zip(whole, results(limit), strict=True):
            assert flambeau.allclose(expected, found, rtol=1e-12, atol=1e-12)


def test_gradients_by_differences() -> None:
    op, *tensors, options = operands(flambeau, "transposed 1d")
    tensors = [each.requires_grad_() for each in tensors]

    def function(*args: Any) -> Any:
        return op(*args, **options)

    assert flambeau.autograd.gradcheck(function, tensors)
    assert flambeau.autograd.gradgradcheck(function, tensors)


@differential
def test_nodes(T: Any) -> Any:
    op, *tensors, options = operands(T, "depthwise")
    node = op(*[each.requires_grad_() for each in tensors], **options).grad_fn
    names = ("bias_sym_sizes_opt", "stride", "padding", "dilation", "transposed", "output_padding", "groups")
    saved = [tuple(value) if isinstance(value := getattr(node, f"_saved_{name}"), tuple) else value for name in names]
    again = op(tensors[0], tensors[1], **options).grad_fn
    complex_result = T.conv1d(
        numbers(T, 1, 2, 4, dtype="complex64").requires_grad_(), numbers(T, 2, 2, 2, dtype="complex64")
    )
    return saved, again._saved_bias_sym_sizes_opt, complex_result


@differential
def test_views_and_expanded_operands(T: Any) -> Any:
    input = numbers(T, 6, 5, 3, 2).permute(3, 2, 0, 1)[:, :, ::2]
    return T.conv2d(input, T.ones(2, 3, 2, 2, dtype=T.float64).expand(2, 3, 2, 2)), T.conv2d(
        T.ones(1, 1, 1, 1).expand(2, 3, 4, 4), T.ones(1).expand(2, 3, 2, 2)
    )


@differential
def test_general_function(T: Any) -> Any:
    _, input, weight, bias, _ = operands(T, "2d")
    return (
        T.convolution(input, weight, bias, [2], [1, 0], [1], False, [0], 1),
        T.convolution(input, weight.transpose(0, 1), None, (1, 2), (1, 0), (1, 1), True, (0, 1), 1),
        T.convolution(input[:, :, 0], weight[:, :, 0], None, [1], [0], [1], False, [0], 1),
        outcome(lambda: T.convolution(input[0], weight, None, [1], [0], [1], False, [0], 1), "Expected 4-dimensional"),
        outcome(lambda: T.convolution(input, weight, None, 1, 0, 1, False, 0, 1), "must be tuple of ints"),
        outcome(lambda: T.convolution(*[T.ones(1, 1, 2, 2, 2, 2)] * 2, None, [1], [0], [1], False, [0], 1), "ConvNd"),
    )


@pytest.mark.parametrize("pad", [0, 2, -1])
@differential
def test_time_first(T: Any, pad: int) -> Any:
    tensors = [numbers(T, 7, 2, 3), numbers(T, 3, 3, 4, shift=1.0), numbers(T, 4)]
    if pad >= 0:
        tensors = [each.requires_grad_() for each in tensors]
    result = T.conv_tbc(*tensors, pad)
    if pad < 0:
        return result
    grads = T.autograd.grad((result**2).sum(), tensors, create_graph=True)
    second = T.autograd.grad(sum((each**2).sum() for each in grads), tensors)
    return result, [each.detach() for each in grads], [each.contiguous() for each in second]


@differential
def test_meta(T: Any) -> Any:
    input = T.empty(10**4, 64, 1000, 1000, device="meta")
    weight = T.empty(32, 64, 3, 3, device="meta", requires_grad=True)
    result = T.conv2d(input, weight, stride=2)
    grad = T.autograd.grad(result, weight, T.empty_like(result))
    return result, grad, T.nn.functional.conv_transpose2d(input, weight.detach().transpose(0, 1))


@differential
def test_nothing_to_convolve(T: Any) -> Any:
    weight = T.ones(6, 4, 3, 3)
    return (
        T.conv2d(T.ones(2, 0, 4, 4), T.ones(3, 0, 2, 2), T.ones(3)).shape,
        outcome(lambda: T.conv2d(T.ones(2, 4, 0, 4), weight, padding=2), "Only zero batch or zero channel"),
        outcome(lambda: T.conv2d(T.ones(2, 4, 5, 5), weight[:0]), "to be at least 1 at dimension 0"),
    )


@pytest.mark.parametrize("bias", [True, False])
@differential
def test_forward_over_reverse(T: Any, bias: bool) -> Any:
    """Tangents of gradients, of which some were not asked for."""
    forward_ad = T.autograd.forward_ad
    x, weight = (T.sin(T.arange(1.0, 1 + size)).reshape(1, 2, -1).double() for size in (10, 6))
    shift = T.ones(1, dtype=T.float64)
    results = []
    for wanted in ((0,), (1,), (0, 1)):
        with forward_ad.dual_level():
            leaves = [each.clone().requires_grad_() for each in (x, weight)]
            duals = [forward_ad.make_dual(each, each.detach().cos()) for each in leaves]
            result = T.conv1d(*duals, shift if bias else None, padding=1)
            found = T.autograd.grad((result**2).sum(), [duals[each] for each in wanted], create_graph=True)
            results += [forward_ad.unpack_dual(each).tangent.detach().tolist() for each in found]
    return results


@differential
def test_no_channels(T: Any) -> Any:
    """Without input channels no channel comes out, and the bias has a gradient of zeros."""
    x, weight, bias = (T.ones(*shape, requires_grad=True) for shape in ((1, 0, 3), (3, 0, 2), (3,)))
    result = T.conv1d(x, weight, bias)
    of_nothing = outcome(lambda: T.conv_transpose1d(T.ones(1, 2, 3), T.ones(2, 0, 2)), "non-empty")
    return result, T.autograd.grad(result.sum(), (x, weight, bias)), of_nothing


@differential
def test_even_kernels_warn(T: Any) -> Any:
    def convolve() -> Any:
        return T.conv1d(T.ones(1, 1, 4), T.ones(1, 1, 2), padding="same")

    if T is flambeau:  # PyTorch warns once in a process, and may have done so
        assert warned(convolve, "even kernel lengths")[1] == ["UserWarning"]
    return convolve()


@differential
def test_errors(T: Any) -> Any:
    F = T.nn.functional
    x, w, b = T.ones(2, 4, 6, 5), T.ones(6, 4, 3, 3), T.ones(6)
    return (
        outcome(lambda: F.conv2d(T.ones(3, 3), w), "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
        outcome(lambda: F.conv1d(x, w), "Expected 2D (unbatched) or 3D (batched) input to conv1d"),
        outcome(lambda: F.conv_transpose3d(x[0], w), "input to conv_transpose3d"),
        outcome(lambda: F.conv2d(x, T.ones(6, 4, 3)), "expected stride to be a single integer value or a list of 1"),
        outcome(lambda: F.conv2d(x, T.ones(())), "weight should have at least three dimensions"),
        outcome(lambda: F.conv2d(x, w[:, :3]), "to have 3 channels, but got 4 channels instead"),
        outcome(lambda: F.conv2d(x[0], w[:, :3]), "expected input[1, 4, 6, 5] to have 3 channels"),
        outcome(lambda: F.conv2d(x, w, T.ones(5)), "1-dimensional with 6 elements, but got bias of size [5]"),
        outcome(lambda: F.conv2d(x, w, padding=-1), "negative padding is not supported"),
        outcome(lambda: F.conv2d(x, w, stride=0), "non-positive stride is not supported"),
        outcome(lambda: F.conv2d(x, w, dilation=0), "non-positive dilation is not supported"),
        outcome(lambda: F.conv2d(x, w, groups=0), "non-positive groups is not supported"),
        outcome(lambda: F.conv2d(x, w, groups=3), "expected input[2, 4, 6, 5] to have 12 channels"),
        outcome(lambda: F.conv2d(x, T.ones(6, 1, 3, 3), groups=4), "to be divisible by 4 at dimension 0"),
        outcome(lambda: F.conv2d(x, T.ones(6, 4, 9, 9)), "Kernel size can't be greater than actual input size"),
        outcome(lambda: F.conv2d(x, w, stride=(1, 1, 1)), "but got stride=[1, 1, 1]"),
        outcome(lambda: F.conv2d(x, w, padding=1.5), "received an invalid combination of arguments"),
        outcome(lambda: F.conv2d(x, w, padding="some"), "Invalid padding string"),
        outcome(lambda: F.conv2d(x, w, padding="same", stride=2), "not supported for strided convolutions"),
        outcome(lambda: F.conv2d(x, w.double()), "Input type (torch.FloatTensor) and weight type (torch.DoubleTensor)"),
        outcome(lambda: F.conv2d(x, w, b.double()), "Input type (float) and bias type (double) should be the same"),
        outcome(lambda: F.conv2d(x.long(), w), "expected scalar type Long but found Float"),
        outcome(lambda: F.conv2d([1.0], w), "conv2d()"),
        outcome(lambda: F.conv2d(x, None), "conv2d()"),
        outcome(lambda: F.conv_transpose2d(x, w), "Given transposed=1, weight of size [6, 4, 3, 3]"),
        outcome(lambda: F.conv_transpose2d(x, w[:4], b), "expected bias to be 1-dimensional with 4 elements"),
        outcome(lambda: F.conv_transpose2d(x, w[:4], output_padding=1), "smaller than either stride or dilation"),
        outcome(lambda: F.conv_transpose2d(x, w[:4], output_padding=-1), "negative output_padding is not supported"),
        outcome(lambda: F.conv_transpose2d(x, w[:4], padding=4)),
        outcome(lambda: F.conv_transpose2d(x, w[:4], padding="same"), "conv_transpose2d()"),
        outcome(lambda: T.conv_tbc(x, w, b), "Input must have 3 dims"),
        outcome(lambda: T.conv_tbc(x[0], w[0], b[:3]), "Input dim 2 (input channels)"),
        outcome(lambda: T.conv_tbc(x[0], T.ones(3, 5, 6), b[:3]), "Bias size must equal"),
    )
