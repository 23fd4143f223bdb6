"""Random arrays against PyTorch: the same numbers for the same seed, and the same state afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch as pytorch

from flambeau._core.generator import Generator
from flambeau._core.random import permutation, rejection_sampling, sampling
from tests.support.oracle import ON_X86

FLOATS = [pytorch.float16, pytorch.bfloat16, pytorch.float32, pytorch.float64]
COMPLEX = [pytorch.complex64, pytorch.complex128]
INTEGERS = [pytorch.uint8, pytorch.int8, pytorch.int16, pytorch.int32, pytorch.int64]
UNSIGNED = [pytorch.uint16, pytorch.uint32, pytorch.uint64]
ALL_DTYPES = [pytorch.bool, *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX]

# (shape in memory, order of its dimensions, step along the last): contiguous and not, below and above a block of 16.
LAYOUTS = [
    *(((count,), (0,), 1) for count in (0, 1, 7, 15, 16, 17, 31, 33, 1000)),
    ((), (), 1),
    ((0, 3), (0, 1), 1),
    ((4, 8), (0, 1), 1),
    ((4, 5), (1, 0), 1),
    ((3, 10), (0, 1), 2),
    ((5, 7, 3), (2, 0, 1), 1),
    ((2, 4, 5, 3), (0, 3, 1, 2), 1),  # channels last
    ((1, 20, 1), (2, 0, 1), 1),
]
Fill = Callable[[Any, Generator], None]
TorchFill = Callable[[Any, pytorch.Generator], Any]


def array_type(dtype: pytorch.dtype) -> np.dtype[Any]:
    name = str(dtype).removeprefix("torch.")
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def as_array(tensor: pytorch.Tensor) -> Any:
    if tensor.dtype is pytorch.bfloat16:
        return tensor.view(pytorch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def empty_pair(
    dtype: pytorch.dtype, layout: tuple[tuple[int, ...], tuple[int, ...], int]
) -> tuple[Any, pytorch.Tensor]:
    shape, order, step = layout
    tensor = pytorch.zeros(shape, dtype=dtype)
    array = np.zeros(shape, array_type(dtype))
    if shape:
        tensor, array = tensor[..., ::step].permute(order), array[..., ::step].transpose(order)
    return array, tensor


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if tolerance == 0:
        np.testing.assert_array_equal(found, expected)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


def check_fill(fill: Fill, torch_fill: TorchFill, dtype: pytorch.dtype, tolerance: float = 0.0) -> None:
    """All layouts in turn from one stream: a draw too many or too few would show in the next one."""
    ours, theirs = Generator().manual_seed(11), pytorch.Generator().manual_seed(11)
    for layout in LAYOUTS:
        array, tensor = empty_pair(dtype, layout)
        fill(array, ours)
        torch_fill(tensor, theirs)
        assert_close(array, as_array(tensor), tolerance)
        np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.37, 1.91), (-2.0, 2.0), (3.0, 3.0), (1000.0, 1000.6)])
def test_uniform(dtype: pytorch.dtype, bounds: tuple[float, float]) -> None:
    check_fill(
        lambda array, generator: sampling.fill_uniform(array, generator, *bounds),
        lambda tensor, generator: tensor.uniform_(*bounds, generator=generator),
        dtype,
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
@pytest.mark.parametrize("moments", [(0.0, 1.0), (0.3, 1.7), (-5.0, 0.0)])
def test_normal(dtype: pytorch.dtype, moments: tuple[float, float]) -> None:
    # Elsewhere PyTorch's logarithm, sine and cosine in float32 are other functions.
    check_fill(
        lambda array, generator: sampling.fill_normal(array, generator, *moments),
        lambda tensor, generator: tensor.normal_(*moments, generator=generator),
        dtype,
    )


def test_large_normal_in_float32() -> None:
    theirs = pytorch.randn(100_003, generator=pytorch.Generator().manual_seed(2)).numpy()
    ours = sampling.normal((100_003,), np.dtype(np.float32), Generator().manual_seed(2))
    assert_close(ours, theirs, 0.0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_log_normal_and_cauchy(dtype: pytorch.dtype) -> None:
    tolerance = {pytorch.float16: 2**-10, pytorch.bfloat16: 2**-7, pytorch.float32: 2**-23}.get(dtype, 2**-50)
    check_fill(
        lambda array, generator: sampling.fill_log_normal(array, generator, 0.3, 0.7),
        lambda tensor, generator: tensor.log_normal_(0.3, 0.7, generator=generator),
        dtype,
        tolerance,
    )
    check_fill(
        lambda array, generator: sampling.fill_cauchy(array, generator, 0.3, 1.7),
        lambda tensor, generator: tensor.cauchy_(0.3, 1.7, generator=generator),
        dtype,
        tolerance,
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("rate", [1.0, 1.7, float("inf")])
def test_exponential(dtype: pytorch.dtype, rate: float) -> None:
    check_fill(
        lambda array, generator: sampling.fill_exponential(array, generator, rate),
        lambda tensor, generator: tensor.exponential_(rate, generator=generator),
        dtype,
        0.0 if dtype.itemsize > 2 else {pytorch.float16: 2**-10, pytorch.bfloat16: 2**-7}[dtype],
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("p", [0.9, 0.3, 0.05])
def test_geometric(dtype: pytorch.dtype, p: float) -> None:
    check_fill(
        lambda array, generator: sampling.fill_geometric(array, generator, p),
        lambda tensor, generator: tensor.geometric_(p, generator=generator),
        dtype,
    )


@pytest.mark.parametrize("dtype", [pytorch.bool, *FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli_with_one_probability(dtype: pytorch.dtype, p: float) -> None:
    check_fill(
        lambda array, generator: sampling.fill_bernoulli(array, generator, p),
        lambda tensor, generator: tensor.bernoulli_(p, generator=generator),
        dtype,
    )


@pytest.mark.parametrize("dtype", [pytorch.bool, pytorch.int64, pytorch.bfloat16, pytorch.float32], ids=str)
@pytest.mark.parametrize("p_dtype", FLOATS, ids=str)
@pytest.mark.parametrize("broadcast", [False, True])
def test_bernoulli_with_a_probability_each(dtype: pytorch.dtype, p_dtype: pytorch.dtype, broadcast: bool) -> None:
    def chances(shape: tuple[int, ...]) -> pytorch.Tensor:
        count = int(np.prod(shape, dtype=int))
        if broadcast and len(shape) > 1:
            return pytorch.linspace(0, 1, shape[-1]).to(p_dtype)
        return pytorch.linspace(0, 1, count).to(p_dtype).reshape(shape)

    check_fill(
        lambda array, generator: sampling.fill_bernoulli(array, generator, as_array(chances(array.shape))),
        lambda tensor, generator: tensor.bernoulli_(chances(tuple(tensor.shape)), generator=generator),
        dtype,
    )


@pytest.mark.parametrize("dtype", [pytorch.bool, *FLOATS, *INTEGERS], ids=str)
def test_random_over_the_whole_type(dtype: pytorch.dtype) -> None:
    check_fill(
        lambda array, generator: sampling.fill_random(array, generator),
        lambda tensor, generator: tensor.random_(generator=generator),
        dtype,
    )


RANGES: list[tuple[int, int | None]] = [
    (0, 2), (-100, 100), (3, None), (0, 2**27), (0, 2**28 - 1), (0, 2**28), (-(2**31), 2**31 - 1), (0, 2**31),
    (5, 2**40), (0, 2**33 + 12345), (-(2**63), 2**63 - 1), (-(2**63), None), (-(2**40) - 1, 3), (0, 65504),
    (2048, 2051),
    (-4099, -4096), (5, 5), (7, 3), (2**24, None), (2**24 - 1, 2**24 + 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_random_between(dtype: pytorch.dtype, bounds: tuple[int, int | None]) -> None:
    ours, theirs = Generator().manual_seed(3), pytorch.Generator().manual_seed(3)
    for layout in [((0,), (0,), 1), ((5,), (0,), 1), ((7, 9), (1, 0), 1)]:
        array, tensor = empty_pair(dtype, layout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tensor.random_(*bounds, generator=theirs)
            except (RuntimeError, NotImplementedError) as expected:
                with pytest.raises(type(expected)):
                    sampling.fill_random_between(array, ours, *bounds)
                return
            sampling.fill_random_between(array, ours, *bounds)
        np.testing.assert_array_equal(array, as_array(tensor))
        np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_random_warns_where_a_float_cannot_hold_every_integer(dtype: pytorch.dtype) -> None:
    limit = {pytorch.float16: 2**11, pytorch.bfloat16: 2**8, pytorch.float32: 2**24, pytorch.float64: 2**53}[dtype]
    array = np.zeros(3, array_type(dtype))
    sampling.fill_random_between(array, Generator(), 0, limit)
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        sampling.fill_random_between(array, Generator(), 0, 4 * limit)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 128, 129, 256, 257, 399, 400, 401, 2049, 2050, 65_536, 65_537, 100_003])
@pytest.mark.parametrize("dtype", [pytorch.int64, pytorch.int32, pytorch.int8, pytorch.uint8, *FLOATS], ids=str)
def test_randperm(n: int, dtype: pytorch.dtype) -> None:
    ours, theirs = Generator().manual_seed(3), pytorch.Generator().manual_seed(3)
    try:
        expected = pytorch.randperm(n, dtype=dtype, generator=theirs)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error).rstrip(".").replace("^", r"\^").replace("+", r"\+")):
            permutation.randperm(n, array_type(dtype), ours)
        return
    assert_close(permutation.randperm(n, array_type(dtype), ours), as_array(expected), 0.0)
    np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


@pytest.mark.parametrize("dtype", [pytorch.bool, pytorch.complex64, pytorch.uint16], ids=str)
def test_randperm_refuses_the_same_dtypes(dtype: pytorch.dtype) -> None:
    with pytest.raises(NotImplementedError) as expected:
        pytorch.randperm(3, dtype=dtype)
    with pytest.raises(NotImplementedError, match=str(expected.value)):
        permutation.randperm(3, array_type(dtype), Generator())


@pytest.mark.parametrize("n", [1, 2, 3, 17, 500])
@pytest.mark.parametrize("forwards", [True, False])
def test_swaps_without_a_loop(n: int, forwards: bool) -> None:
    random = np.random.default_rng(n)
    positions = np.arange(n)
    partners = random.integers(positions, n) if forwards else random.integers(0, positions + 1)
    expected = list(range(n))
    for k, partner in enumerate(partners):
        expected[k], expected[partner] = expected[partner], expected[k]
    swap = permutation.swap_forwards if forwards else permutation.swap_backwards
    np.testing.assert_array_equal(swap(partners), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 1000), (0, 4)], ids=str)
@pytest.mark.parametrize(("replacement", "count"), [(False, 1), (True, 1), (True, 50), (False, 3)])
def test_multinomial(dtype: pytorch.dtype, shape: tuple[int, ...], replacement: bool, count: int) -> None:
    ours, theirs = Generator().manual_seed(5), pytorch.Generator().manual_seed(5)
    weights = pytorch.rand(shape, generator=pytorch.Generator().manual_seed(1)).add(0.01).to(dtype)
    for _ in range(3):
        expected = pytorch.multinomial(weights, count, replacement, generator=theirs).numpy()
        found = sampling.multinomial(as_array(weights), count, replacement, ours)
        assert found.shape == expected.shape
        assert found.dtype == np.int64
        if dtype.itemsize > 2 or replacement or count == 1:
            np.testing.assert_array_equal(found, expected)
        # The order of equal scores is left open by PyTorch's topk, and in two bytes scores are often equal.
        np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("high", [0.0, 3.0, 30.0, 10_000.0])
def test_poisson(dtype: pytorch.dtype, high: float) -> None:
    rates = pytorch.rand(700, generator=pytorch.Generator().manual_seed(1)).mul(high).to(dtype)
    check_rejection(
        lambda generator: rejection_sampling.poisson(as_array(rates), generator),
        lambda generator: pytorch.poisson(rates, generator),
    )


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
@pytest.mark.parametrize("count", [0.0, 3.5, 40.0, 1_000_000.0])
def test_binomial(dtype: pytorch.dtype, count: float) -> None:
    chances = pytorch.linspace(-0.1, 1.1, 700, dtype=dtype)
    chances[5] = float("nan")
    counts = pytorch.full_like(chances, count)
    check_rejection(
        lambda generator: rejection_sampling.binomial(as_array(counts), as_array(chances), generator),
        lambda generator: pytorch.binomial(counts, chances, generator),
    )


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
@pytest.mark.parametrize("high", [0.0, 1e-3, 1.0, 30.0])
def test_gamma_and_dirichlet(dtype: pytorch.dtype, high: float) -> None:
    shapes = pytorch.rand(100, 7, generator=pytorch.Generator().manual_seed(1)).mul(high).to(dtype)
    check_rejection(
        lambda generator: rejection_sampling.gamma(as_array(shapes), generator),
        lambda generator: pytorch._standard_gamma(shapes, generator),
    )
    check_rejection(
        lambda generator: rejection_sampling.dirichlet(as_array(shapes), generator),
        lambda generator: pytorch._sample_dirichlet(shapes, generator),
        2**-50 if ON_X86 else 0.0,  # there PyTorch adds rows up in wider vectors
    )


def check_rejection(draw: Callable[[Generator], Any], torch_draw: Callable[[Any], Any], tolerance: float = 0.0) -> None:
    """Twice in turn, from a stream in which a normal number waits and which stands at an odd word."""
    ours, theirs = Generator().manual_seed(5), pytorch.Generator().manual_seed(5)
    ours.scalar_normals(1)
    ours.unit32(1)
    pytorch.randn(1, generator=theirs)
    pytorch.rand(1, generator=theirs)
    for _ in range(2):
        assert_close(draw(ours), as_array(torch_draw(theirs)), tolerance)
        np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


def test_a_failing_draw_gives_the_rest_back() -> None:
    ours, theirs = Generator().manual_seed(5), pytorch.Generator().manual_seed(5)

    def draw_two_and_fail() -> None:
        with ours.one_by_one() as source:
            raise KeyError(next(source.units) + next(source.units))

    with pytest.raises(KeyError):
        draw_two_and_fail()
    pytorch.rand(2, generator=theirs, dtype=pytorch.float64)
    np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


def test_a_mixed_program_continues_alike() -> None:
    ours, theirs = Generator().manual_seed(77), pytorch.Generator().manual_seed(77)
    for length in (3, 17, 5, 200, 9):
        a32, t32 = empty_pair(pytorch.float32, ((length,), (0,), 1))
        sampling.fill_normal(a32, ours)
        t32.normal_(generator=theirs)
        a64, t64 = empty_pair(pytorch.float64, ((length,), (0,), 1))
        sampling.fill_log_normal(a64, ours)
        t64.log_normal_(generator=theirs)
        np.testing.assert_allclose(a64, t64.numpy(), rtol=2**-50)
        np.testing.assert_array_equal(
            permutation.randperm(length, np.dtype(np.int64), ours), pytorch.randperm(length, generator=theirs).numpy()
        )
        found = sampling.uniform((length, 2), np.dtype(np.float32), ours)
        np.testing.assert_array_equal(found, pytorch.rand(length, 2, generator=theirs).numpy())
        np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


Call = tuple[str, tuple[Any, ...]]
FILLS: dict[str, Callable[..., None]] = {
    "uniform_": sampling.fill_uniform, "normal_": sampling.fill_normal, "log_normal_": sampling.fill_log_normal,
    "exponential_": sampling.fill_exponential, "cauchy_": sampling.fill_cauchy, "geometric_": sampling.fill_geometric,
    "bernoulli_": sampling.fill_bernoulli, "random_": sampling.fill_random,
}  # fmt: skip


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uniform_", (2, 1)), ("uniform_", (-3e38, 3e38)), ("uniform_", (0, 1e39)), ("uniform_", (float("nan"), 1)),
        ("uniform_", ()), ("normal_", ()), ("normal_", (0, -1)), ("normal_", (0, float("nan"))), ("log_normal_", ()),
        ("log_normal_", (0, 0)), ("exponential_", ()), ("exponential_", (0,)), ("cauchy_", ()), ("cauchy_", (0, 0)),
        ("geometric_", (0.5,)), ("geometric_", (0,)), ("geometric_", (1,)), ("bernoulli_", (0.5,)),
        ("bernoulli_", (1.5,)), ("bernoulli_", (float("nan"),)), ("random_", ()),
    ],
    ids=str,
)  # fmt: skip
def test_errors(name: str, arguments: tuple[Any, ...], dtype: pytorch.dtype, count: int) -> None:
    """The same calls fail, with the same exception type and the same beginning of the message."""
    array = np.zeros(count, array_type(dtype))
    try:
        getattr(pytorch.zeros(count, dtype=dtype), name)(*arguments)
    except (RuntimeError, NotImplementedError) as expected:
        with pytest.raises(type(expected)) as found:
            FILLS[name](array, Generator(), *arguments)
        words = str(expected).split(",")[0].split("std::")[0].split(":")[0]
        assert words in str(found.value)
    else:
        FILLS[name](array, Generator(), *arguments)


@pytest.mark.parametrize("p", [[2.0, 0.1], [-0.1, 0.1], [float("nan"), 0.5]])
def test_bernoulli_names_the_bad_probability(p: list[float]) -> None:
    with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
        pytorch.zeros(2).bernoulli_(pytorch.tensor(p))
    with pytest.raises(RuntimeError, match=rf"p_in >= 0 && p_in <= 1.*{p[0]}"):
        sampling.fill_bernoulli(
            np.zeros(2, np.float32), Generator(), np.array(p, np.float32).astype(np.float64).round(6)
        )


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "weights",
    [[1.0, -1.0], [0.0, 0.0], [1.0, float("nan")], [1.0, float("inf")], 1.0, [[[1.0, 1.0]]], [1, 1]],
    ids=str,
)
def test_multinomial_errors(weights: Any, count: int, replacement: bool) -> None:
    tensor = pytorch.tensor(weights)
    with pytest.raises(RuntimeError) as expected:
        pytorch.multinomial(tensor, count, replacement)
    with pytest.raises(RuntimeError) as found:
        sampling.multinomial(tensor.numpy(), count, replacement, Generator())
    assert str(expected.value) in str(found.value)
