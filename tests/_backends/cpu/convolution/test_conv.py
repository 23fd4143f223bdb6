"""Generated convolutions beside NumPy's kernels and PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.convolution import conv, depthwise, winograd
from flambeau._backends.cpu.convolution import small as conv_few
from flambeau._backends.cpu.convolution.images import planar
from flambeau._backends.cpu.linalg import gemm
from flambeau._codegen.images.conv_depthwise import Depthwise
from flambeau._codegen.products.gemm import Tile
from flambeau._core.geometry.moving_windows import Geometry, correlated_sizes
from flambeau._core.process.threads import change_num_threads, num_threads
from flambeau._ops.nn import conv_kernels

DTYPES = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# Sums of a few hundred products of numbers around 1, in another order than NumPy's.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-2, "bfloat16": 2e-1}

# Input (batch, channels, *sizes), outputs, kernel, stride, padding, dilation, groups.
CASES: dict[str, tuple[Any, ...]] = {
    "3x3": ((2, 16, 9, 11), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "valid": ((3, 5, 8, 8), 7, (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "stride 2": ((2, 6, 9, 13), 10, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    "stride 3, kernel 2": ((2, 6, 11, 10), 4, (2, 2), (3, 3), (0, 0), (1, 1), 1),
    "different in each dimension": ((2, 4, 12, 9), 9, (5, 2), (1, 2), (3, 0), (1, 2), 1),
    "dilation": ((2, 8, 12, 12), 8, (3, 3), (1, 1), (2, 2), (2, 2), 1),
    "more padding than kernel": ((2, 3, 5, 5), 12, (2, 2), (1, 1), (3, 3), (1, 1), 1),
    "1x1": ((2, 20, 7, 5), 33, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1, stride 2": ((2, 8, 9, 8), 16, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    "side by side": ((5, 6, 20, 24), 9, (4, 4), (4, 4), (0, 0), (1, 1), 1),
    "side by side, rest of the image": ((70, 3, 11, 13), 10, (3, 5), (3, 5), (0, 0), (1, 1), 1),
    "1x1, padded": ((2, 8, 4, 4), 16, (1, 1), (1, 1), (1, 1), (1, 1), 1),
    "groups": ((2, 12, 7, 7), 18, (3, 3), (1, 1), (1, 1), (1, 1), 3),
    "groups, stride 2": ((3, 12, 8, 8), 24, (3, 3), (2, 2), (1, 1), (1, 1), 6),
    "depthwise": ((2, 10, 9, 9), 10, (3, 3), (1, 1), (1, 1), (1, 1), 10),
    "depthwise, narrow": ((2, 10, 9, 3), 10, (3, 3), (1, 1), (1, 1), (1, 1), 10),
    "depthwise, stride 2": ((2, 6, 15, 17), 6, (5, 5), (2, 2), (2, 2), (1, 1), 6),
    "depthwise, two outputs": ((2, 6, 10, 10), 12, (3, 3), (1, 1), (1, 1), (1, 1), 6),
    "depthwise, wide": ((3, 5, 9, 8), 5, (7, 7), (1, 1), (3, 3), (1, 1), 5),
    "depthwise, wider than the image": ((2, 4, 6, 3), 4, (9, 11), (1, 1), (4, 5), (1, 1), 4),
    "depthwise, wide, apart": ((2, 4, 13, 9), 4, (3, 5), (2, 1), (3, 1), (3, 1), 4),
    "depthwise, small": ((3, 6, 7, 7), 6, (5, 5), (1, 1), (2, 2), (1, 1), 6),
    "depthwise, small, read in place": ((2, 5, 9, 9), 5, (3, 3), (1, 1), (0, 0), (1, 1), 5),
    "depthwise, small, stride 2": ((2, 6, 13, 14), 6, (5, 3), (2, 2), (2, 1), (1, 1), 6),
    "depthwise, small, stride 3 down": ((2, 4, 14, 9), 4, (3, 3), (3, 1), (1, 1), (1, 1), 4),
    "depthwise, small, dilated": ((2, 4, 11, 10), 4, (3, 3), (1, 1), (2, 2), (2, 2), 4),
    "depthwise, 2x2": ((3, 7, 2, 2), 7, (3, 3), (1, 1), (1, 1), (1, 1), 7),
    "depthwise, one column": ((2, 6, 20, 1), 6, (3, 1), (1, 1), (1, 0), (1, 1), 6),
    "one channel": ((4, 1, 14, 14), 8, (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "one output": ((2, 24, 10, 10), 1, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "three channels": ((2, 3, 12, 12), 16, (7, 7), (2, 2), (3, 3), (1, 1), 1),
    "one sample": ((1, 16, 5, 5), 40, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many small samples": ((19, 40, 2, 2), 40, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "one position": ((3, 7, 3, 3), 5, (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "by tiles": ((4, 32, 8, 8), 40, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "by tiles, odd sizes": ((5, 40, 7, 13), 32, (3, 3), (1, 1), (2, 0), (1, 1), 1),
    "by tiles, many samples": ((33, 48, 4, 4), 56, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "by tiles, large": ((3, 16, 47, 52), 16, (3, 3), (1, 1), (0, 1), (1, 1), 1),
    "deep": ((1, 90, 4, 4), 17, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "1-d": ((2, 9, 40), 11, (5,), (1,), (2,), (1,), 1),
    "1-d, stride 4": ((2, 3, 67), 11, (9,), (4,), (4,), (2,), 1),
    "1-d, side by side": ((3, 5, 30), 7, (6,), (6,), (0,), (1,), 1),
    "1-d, depthwise": ((2, 8, 30), 8, (4,), (1,), (1,), (1,), 8),
    "1-d, depthwise, small": ((2, 8, 10), 8, (4,), (1,), (1,), (1,), 8),
    "3-d": ((2, 4, 5, 6, 7), 6, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    "3-d, stride 2": ((2, 4, 5, 6, 7), 6, (2, 3, 1), (2, 1, 2), (0, 1, 0), (1, 2, 1), 2),
    "3-d, depthwise": ((2, 5, 4, 5, 6), 5, (2, 2, 2), (1, 1, 1), (1, 0, 1), (1, 1, 1), 5),
}


class Operands:
    """Random operands of one convolution, the same for the same case."""

    def __init__(self, case: str, dtype: str) -> None:
        self.shape, self.outputs, self.kernel, *numbers = CASES[case]
        self.geometry = Geometry(*numbers)
        self.sizes = correlated_sizes(self.shape[2:], self.kernel, self.geometry)
        generator = np.random.default_rng(len(case))

        def normal(shape: tuple[int, ...]) -> Any:
            return generator.standard_normal(shape).astype(DTYPES[dtype])

        self.input = normal(self.shape)
        self.weight = normal((self.outputs, self.shape[1] // self.geometry.groups, *self.kernel))
        self.bias, self.other_bias = normal((self.outputs,)), normal((self.shape[1],))
        self.grad = normal((self.shape[0], self.outputs, *self.sizes))

    def convolution(self, tier: Any, last: bool, bias: bool = True) -> Any:
        given = self.bias if bias else None
        return tier.correlate(self.input, self.weight, given, self.sizes, self.geometry, last)

    def transpose(self, tier: Any, last: bool, bias: bool = False) -> Any:
        given = self.other_bias if bias else None
        return tier.correlate_transposed(self.grad, self.weight, given, self.shape[2:], self.geometry, last)

    def weight_gradient(self, tier: Any, last: bool) -> Any:
        return tier.weight_gradient(self.input, self.grad, self.kernel, self.geometry, last)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "convolution": Operands.convolution,
    "transpose": Operands.transpose,
    "weight gradient": Operands.weight_gradient,
}


TIERS = {"blocks": conv, "plain loops": conv_few}


def assert_same(found: Any, expected: Any, dtype: str, depth: int) -> None:
    assert found.dtype == expected.dtype
    assert found.strides == expected.strides
    scale = max(depth, 1) ** 0.5
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
    assert difference <= TOLERANCE[dtype] * scale


def reference(product: Callable[..., Any], operands: Operands, *options: Any) -> Any:
    with tiers.numpy_only():
        return product(operands, conv_kernels, *options)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tier", TIERS)
def test_products(case: str, name: str, dtype: str, tier: str) -> None:
    operands = Operands(case, dtype)
    for last in (False, True):
        found = PRODUCTS[name](operands, TIERS[tier], last)
        assert_same(found, reference(PRODUCTS[name], operands, last), dtype, operands.grad.size // operands.outputs)


@pytest.mark.parametrize("case", ["3x3", "stride 2", "1x1", "depthwise", "one output", "1-d", "3-d"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("tier", TIERS)
def test_half_precision_is_rounded_once(case: str, name: str, dtype: str, tier: str) -> None:
    operands = Operands(case, dtype)
    found = PRODUCTS[name](operands, TIERS[tier], False)
    wide = Operands(case, dtype)
    for field in ("input", "weight", "bias", "other_bias", "grad"):
        setattr(wide, field, getattr(operands, field).astype(np.float64))
    exact = reference(PRODUCTS[name], wide, False)
    assert found.dtype == DTYPES[dtype]
    # Half a unit in the last place, and a little for the sums in float32.
    unit = np.spacing(np.abs(exact.astype(np.float32)).astype(np.float16)).astype(np.float64)
    if dtype == "bfloat16":
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 1e-30))) - 7)
    assert (np.abs(found.astype(np.float64) - exact) <= 0.51 * unit + 1e-4).all()


@pytest.mark.parametrize("case", ["3x3", "stride 2", "1x1, stride 2", "groups", "depthwise", "one output", "3-d"])
@pytest.mark.parametrize("name", ["convolution", "transpose"])
@pytest.mark.parametrize("tier", TIERS)
def test_bias_and_none(case: str, name: str, tier: str) -> None:
    operands = Operands(case, "float32")
    for bias in (False, True):
        found = PRODUCTS[name](operands, TIERS[tier], False, bias)
        expected = reference(PRODUCTS[name], operands, False, bias)
        assert_same(found, expected, "float32", operands.weight[0].size)


def _spread_out(array: Any) -> Any:
    """The same elements, far from each other and in reverse order."""
    wide = np.zeros([2 * size + 1 for size in array.shape], array.dtype)
    view = wide[tuple(slice(None, 0, -2) for _ in array.shape)]
    view[...] = array
    return view


def _last(array: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def _expanded(array: Any) -> Any:
    return np.broadcast_to(array[:1, :1], array.shape)


@pytest.mark.parametrize("case", ["3x3", "stride 2", "1x1", "groups", "depthwise", "one output", "3-d"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("change", [_spread_out, _last, _expanded])
@pytest.mark.parametrize("tier", TIERS)
def test_memory_in_any_order(case: str, name: str, change: Callable[[Any], Any], tier: str) -> None:
    operands = Operands(case, "float32")
    for field in ("input", "weight", "grad"):
        setattr(operands, field, change(getattr(operands, field)))
    for last in (False, True):
        found = PRODUCTS[name](operands, TIERS[tier], last)
        assert_same(found, reference(PRODUCTS[name], operands, last), "float32", operands.grad.size // operands.outputs)


def test_little_is_done_by_plain_loops() -> None:
    generated_code = flambeau.backends.cpu.generated_code
    for size, used in ((6, True), (40, False)):
        x, layer = flambeau.ones(1, 2, size, size, requires_grad=True), flambeau.nn.Conv2d(2, 2, 3)
        code = generated_code(lambda: layer(x).sum().backward(), form="written")  # noqa: B023
        assert [name in code for name in ("correlate_few", "correlate_transposed_few", "weigh_few")] == [used] * 3


def forget_plans() -> None:
    for plans in (
        conv._correlation,
        conv._transposed_correlation,
        conv._weighing,
        conv._weighing_by_tiles,
        conv._depthwise_weighing,
    ):
        plans.cache_clear()


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("case", ["3x3", "by tiles", "stride 2", "many small samples", "one channel", "depthwise",
                                  "depthwise, wide"])  # fmt: skip
def test_the_number_of_threads_changes_nothing(name: str, case: str) -> None:
    before = num_threads()
    operands = Operands(case, "float32")
    results = set()
    try:
        for threads in (1, 2, 5):
            change_num_threads(threads)
            forget_plans()
            results.add(PRODUCTS[name](operands, conv, False).tobytes())
    finally:
        change_num_threads(before)
        forget_plans()
    assert len(results) == 1


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("case", ["by tiles, odd sizes", "stride 2"])
@pytest.mark.parametrize("tile", [Tile(4, 3, 8, True, False), Tile(8, 3, 16, True, False), Tile(4, 2, 4, False, False)])
def test_tiles_of_other_processors(monkeypatch: pytest.MonkeyPatch, tile: Tile, case: str, name: str) -> None:
    for module in (conv, gemm, winograd):
        monkeypatch.setattr(module, "tile_for", lambda *_: tile)
    forget_plans()
    try:
        operands = Operands(case, "float32")
        found = PRODUCTS[name](operands, conv, False)
        assert_same(
            found, reference(PRODUCTS[name], operands, False), "float32", operands.grad.size // operands.outputs
        )
    finally:
        forget_plans()


def test_memory_beyond_an_image_is_not_read() -> None:
    """Images that are read in place end where they end: what follows is not theirs."""
    guarded = np.full(4 * 6 * 6 + 64, np.nan, np.float32)
    image = guarded[: 4 * 36].reshape(1, 4, 6, 6)
    image[...] = np.arange(144).reshape(image.shape) % 7
    weight = np.ones((9, 4, 3, 3), np.float32)
    geometry = Geometry((1, 1), (0, 0), (1, 1), 1)
    found = conv.correlate(image, weight, None, (4, 4), geometry, False)
    expected = torch.nn.functional.conv2d(torch.from_numpy(image.copy()), torch.from_numpy(weight))
    np.testing.assert_array_equal(found, expected.numpy())


def test_rows_that_fill_no_vector_are_computed_as_one_that_ends_where_they_end() -> None:
    lanes, narrow = depthwise.tile_for("float32", 1).lanes, 0
    for height, width, down in itertools.product(range(1, 20), range(1, lanes), (1, 2)):
        image = planar((2, 3, 1, down * height, width), (1,) * 5, (0, 0, 1), (1, down * height, width + 2), 1, 1)
        sizes, row = (1, height, width), down * image.row_step
        if not depthwise.fits("float32", 1, 1, sizes, row):
            assert (height - 1) * row + width < lanes
            continue
        plan = depthwise.convolving("float32", 2, 3, image, sizes, (1, down, 1), [0, 1, 2], [0, 1, 2], chained=False)
        assert isinstance(plan, depthwise.NarrowPlanes)
        table = Depthwise(*plan.lines.table.tolist())
        computed = {at + table.out_row * number for number in range(table.height) for at in range(table.width)}
        assert computed == set(range((height - 1) * row + width))
        assert table.width >= lanes
        narrow += 1
    assert narrow > 100


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("case", ["by tiles", "stride 2", "depthwise"])
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
def test_infinities_and_nan_stay_where_they_are(name: str, case: str, special: float) -> None:
    operands = Operands(case, "float32")
    operands.input[0, 0, 4, 4] = operands.grad[1, 0, 2, 2] = special
    found = PRODUCTS[name](operands, conv, False)
    expected = reference(PRODUCTS[name], operands, False)
    finite = np.isfinite(expected)
    if special == 3e38 and name == "weight gradient":
        finite &= np.isfinite(found)  # whether a sum overflows depends on the order in which it is added up
    else:
        np.testing.assert_array_equal(np.isfinite(found), finite)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-4, atol=1e-4)


def test_what_is_not_known_is_left_to_numpy() -> None:
    operands = Operands("3x3", "float32")
    operands.input = operands.input.astype(np.complex64)
    operands.weight = operands.weight.astype(np.complex64)
    assert operands.convolution(conv, False, False) is None
    operands = Operands("3x3", "float32")
    operands.weight = operands.weight.astype(np.float64)
    assert operands.convolution(conv, False, False) is None
    operands = Operands("3x3", "float32")
    records = np.zeros(operands.input.shape, np.dtype([("skip", np.uint8), ("value", np.float32)]))
    operands.input = records["value"]  # its strides are no multiples of an element
    assert operands.convolution(conv, False) is None


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_layers_train_like_pytorch(transposed: bool, dtype: str, layout: str) -> None:
    """Through the public functions, at a size for which kernels are chosen, generated ones at least for float64."""
    conv._transposed_correlation.cache_clear()
    shape, weight_shape = (4, 16, 14, 14), (16, 24, 3, 3) if transposed else (24, 16, 3, 3)
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(size).astype(np.float32) for size in (shape, weight_shape, (24,))]
    results = []
    for library in (torch, flambeau):
        precise = getattr(library, dtype)
        input, weight, bias = (library.tensor(each).to(precise).requires_grad_() for each in arrays)
        given = input.contiguous(memory_format=library.channels_last) if layout == "channels last" else input
        function = library.nn.functional.conv_transpose2d if transposed else library.nn.functional.conv2d
        output = function(given, weight, bias, stride=2, padding=1)
        output.backward(output.detach() / 8)
        found = (output.detach(), input.grad, weight.grad, bias.grad)
        results.append([(each.double().numpy(), each.stride(), str(each.dtype).split(".")[1]) for each in found])
    for (expected, strides, kind), (found, own_strides, own_kind) in zip(*results, strict=True):
        assert (strides, kind) == (own_strides, own_kind)
        allowed = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 2e-2}[dtype] * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=allowed, rtol=0)
    assert dtype != "float64" or conv._transposed_correlation.cache_info().currsize > 0


def test_windows_in_space_are_no_less_accurate_than_pytorchs() -> None:
    """Of a few channels: their products are added up before those of positions."""
    generator, errors = np.random.default_rng(0), np.zeros(2)
    for _ in range(10):
        input, weight = (
            generator.uniform(-9, 9, size).astype(np.float32) for size in ((1, 4, 5, 5, 5), (4, 8, 3, 3, 3))
        )
        exact = torch.nn.functional.conv_transpose3d(
            torch.tensor(input).double(), torch.tensor(weight).double()
        ).numpy()
        for number, library in enumerate((torch, flambeau)):
            found = library.nn.functional.conv_transpose3d(library.tensor(input), library.tensor(weight)).numpy()
            errors[number] += np.square(found - exact).mean()
    assert errors[1] <= 1.1 * errors[0]


@pytest.mark.parametrize("case", ["depthwise, wide", "depthwise, wide, apart", "1-d, depthwise"])
def test_weights_of_wide_windows_are_no_less_accurate_than_pytorchs(case: str) -> None:
    """Generated code computes these gradients, even beside a vendor's library, which has no good kernel for them."""
    (batch, channels, *sizes), _, kernel, stride, padding, dilation, groups = CASES[case]
    shape = (4 * batch, 8 * channels, *[2 * size for size in sizes])
    generator, errors = np.random.default_rng(0), np.zeros(2)
    arrays = [generator.standard_normal(each).astype(np.float32) for each in (shape, (8 * channels, 1, *kernel))]

    def gradient(library: Any, dtype: Any) -> Any:
        input, weight = (library.tensor(each).to(dtype) for each in arrays)
        convolution = getattr(library.nn.functional, f"conv{len(kernel)}d")
        output = convolution(input, weight.requires_grad_(), None, stride, padding, dilation, 8 * groups)
        output.backward(output.detach())
        return weight.grad.double().numpy()

    exact = gradient(torch, torch.float64)
    conv._depthwise_weighing.cache_clear()
    for number, library in enumerate((torch, flambeau)):
        errors[number] = np.square(gradient(library, library.float32) - exact).mean()
    assert conv._depthwise_weighing.cache_info().currsize == 1
    assert errors[1] <= 1.1 * errors[0]
    assert errors[1] <= 1e-10 * np.square(exact).mean()


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 8, 8)])
def test_empty_batches(shape: tuple[int, ...]) -> None:
    input = flambeau.ones(shape, requires_grad=True)
    weight = flambeau.ones(64, 3, 3, 3, requires_grad=True)
    output = flambeau.nn.functional.conv2d(input, weight, padding=1)
    assert tuple(output.shape) == (shape[0], 64, 8, 8)
    output.sum().backward()
    assert input.grad is not None
    assert tuple(input.grad.shape) == shape
    assert weight.grad is not None
    assert (weight.grad.sum().item() == 0) is (shape[0] == 0)
