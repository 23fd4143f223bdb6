"""Pooling and its inverse against PyTorch: values, places, layouts, derivatives, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ....support.differential import differential, outcome

SIZES = (7, 5, 6)


def signal(T: Any, rank: int, batch: bool = True, dtype: str = "float64") -> Any:
    shape = ((2, 3) if batch else (3,)) + SIZES[:rank]
    count = math.prod(shape)
    return ((T.arange(count) * 37 % 101) % 17 - 8).reshape(shape).to(getattr(T, dtype))


def derivatives(T: Any, make: Any, x: Any) -> Any:
    """The result, and the first and second derivative of a weighted sum of its cubes."""
    x = x.requires_grad_()
    result = make(x)
    weights = T.linspace(0.5, 1.5, result.numel(), dtype=x.dtype).reshape(result.shape)
    (first,) = T.autograd.grad((result**3 * weights).sum(), x, create_graph=True)
    return result, first.detach(), *T.autograd.grad((first**2).sum(), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (2, 3, 0, 2), (3, 2, 1, 2, True), (3, 1, 1, 1, True)])
@differential(tolerance=0.0)
def test_max_pool(T: Any, rank: int, window: tuple[Any, ...]) -> Any:
    op = getattr(T.nn.functional, f"max_pool{rank}d")
    observed = []
    for batch in (True, False):
        x = signal(T, rank, batch, "float32")
        observed += [op(x, *window), op(x, *window, return_indices=True)]
    return observed


@pytest.mark.parametrize("window", [(2,), (2, 1), (3, 2, 0, 2), ((1, 3), (2, 1)), (2, 2, 0, 1, True)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@differential(tolerance=0.0)
def test_max_pool_of_few_elements(T: Any, window: tuple[Any, ...], dtype: str) -> Any:
    """Small planes have a way of their own: equals, signed zeros, nothing but -inf."""
    x = ((T.arange(2 * 5 * 6) * 7 % 11) % 5 - 2).reshape(1, 2, 5, 6).to(getattr(T, dtype))
    given = [x, -x] if dtype == "int32" else [x, -x, x.log(), T.full_like(x, -math.inf)]
    given = [each.nan_to_num(-math.inf) for each in given]
    results = [T.nn.functional.max_pool2d(each, *window, return_indices=True) for each in given]
    return results, [values.signbit() for values, _ in results]


@pytest.mark.parametrize("rank", [1, 2, 3])
@differential(tolerance=0.0)
def test_the_last_nan_and_the_first_of_equals_win(T: Any, rank: int) -> Any:
    x = signal(T, rank)
    x[0, 0] = -math.inf
    x[0, 1, 1] = math.nan
    x[1, 2] = 4
    op = getattr(T.nn.functional, f"max_pool{rank}d")
    adaptive = getattr(T.nn.functional, f"adaptive_max_pool{rank}d")
    return op(x, 3, 2, 1), op(x, 3, 2, 1, return_indices=True), adaptive(x, 3, return_indices=True)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "bfloat16"])
@differential(tolerance=0.0)
def test_dtypes(T: Any, dtype: str) -> Any:
    x = signal(T, 2).abs().to(getattr(T, dtype))
    F = T.nn.functional
    observed = [F.max_pool2d(x, 2, padding=1, return_indices=True)]
    if dtype not in ("uint8", "int32"):
        observed.append(F.avg_pool2d(x - 5, 3, 2, 1))
    if x.is_floating_point():
        observed += [F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool3d(x, (2, 3, 4))]
    return observed


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (3, 2, 1, True), (3, 2, 1, True, False)])
@differential(tolerance=0.0)
def test_avg_pool(T: Any, rank: int, window: tuple[Any, ...]) -> Any:
    op = getattr(T.nn.functional, f"avg_pool{rank}d")
    override = () if rank == 1 else (op(signal(T, rank), 2, divisor_override=3),)
    return op(signal(T, rank), *window), op(signal(T, rank, False, "float32"), *window), override


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [(3, 2, 4), (7, 1, 3), (9, 11, 5), (1, 1, 1), (0, 2, 1)])
@differential(tolerance=1e-5)
def test_adaptive_pool(T: Any, rank: int, size: tuple[int, ...]) -> Any:
    F = T.nn.functional
    x = signal(T, rank, dtype="float32")
    largest = getattr(F, f"adaptive_max_pool{rank}d")
    return getattr(F, f"adaptive_avg_pool{rank}d")(x, size[:rank]), largest(x, size[:rank], return_indices=True)


@pytest.mark.parametrize(
    "expression",
    [
        "F.max_pool1d(x[0, 0], 3, 2, 1)",
        "F.max_pool2d(x[0], 3, 2, 1)",
        "F.max_pool3d(x, 2, 1)",
        "F.avg_pool1d(x[0, 0], 3, 2, 1)",
        "F.avg_pool2d(x[0], 3, 2, 1, True, False)",
        "F.avg_pool3d(x, 2, 1, divisor_override=5)",
        "F.adaptive_avg_pool1d(x[0, 0], 3)",
        "F.adaptive_avg_pool2d(x[0], (3, 2))",
        "F.adaptive_avg_pool2d(x[0], 1)",
        "F.adaptive_avg_pool3d(x, (3, 2, None))",
        "F.adaptive_max_pool1d(x[0, 0], 3)",
        "F.adaptive_max_pool2d(x[0], (3, 2))",
        "F.adaptive_max_pool3d(x, (3, 2, 4))",
        "F.fractional_max_pool2d(x[0], 2, 3)",
        "F.fractional_max_pool3d(x, 2, output_ratio=0.6)",
        "F.lp_pool1d(x[0, 0].abs() + 1, 2, 3)",
        "F.lp_pool2d(x[0].abs() + 1, 3, (2, 3), 2)",
        "F.lp_pool3d(x.abs() + 1, 1.5, 2, ceil_mode=True)",
        "F.max_unpool2d(*F.max_pool2d(x[0], 2, return_indices=True), 2)",
        "F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=x.shape)",
    ],
)
@differential(tolerance=1e-5)
def test_derivatives(T: Any, expression: str) -> Any:
    x = signal(T, 3) + T.linspace(0, 0.5, 2 * 3 * 7 * 5 * 6, dtype=T.float64).reshape(2, 3, *SIZES)
    return derivatives(T, lambda x: eval(expression, {"F": T.nn.functional, "x": x}), x)


@pytest.mark.parametrize("rank", [2, 3])
@differential(tolerance=0.0)
def test_fractional_pool_draws_the_same_windows(T: Any, rank: int) -> Any:
    op = getattr(T.nn.functional, f"fractional_max_pool{rank}d")
    x = signal(T, rank, dtype="float32")
    samples = T.full((1, 3, rank), 0.3)
    return (
        op(x, 2, 3, return_indices=True),
        op(x[0], 2, output_ratio=(0.5, 0.7, 0.6)[:rank]),
        op(x[0], (3, 2, 2)[:rank], 2, _random_samples=samples),
        T.rand(2),
    )


@differential
def test_unpool(T: Any) -> Any:
    F = T.nn.functional
    x = signal(T, 1)
    values, places = F.max_pool1d(x, 3, 2, return_indices=True)
    return F.max_unpool1d(values, places, 3, 2), F.max_unpool1d(values, places, 3, 2, output_size=[8])


@pytest.mark.parametrize("rank", [2, 3])
@differential(tolerance=1e-5)
def test_channels_last(T: Any, rank: int) -> Any:
    F = T.nn.functional
    layout = T.channels_last if rank == 2 else T.channels_last_3d
    x = signal(T, rank, dtype="float32").contiguous(memory_format=layout).requires_grad_()
    observed = []
    for name, arguments in (
        ("max_pool", (3, 2, 1)),
        ("avg_pool", (3, 2, 1)),
        ("adaptive_avg_pool", (3,)),
        ("adaptive_max_pool", (3,)),
    ):
        result = getattr(F, f"{name}{rank}d")(x, *arguments)
        observed += [result, *T.autograd.grad((result * result.detach()).sum(), x)]
    return observed, F.max_pool2d(x.detach(), 2) if rank == 2 else F.max_pool3d(x.detach(), 2)


@differential
def test_no_batch_and_no_data(T: Any) -> Any:
    F = T.nn.functional
    empty = T.ones(0, 3, 4, 4)
    return (
        F.max_pool2d(empty, 2),
        F.avg_pool2d(empty, 2),
        F.adaptive_avg_pool2d(empty, 3),
        F.fractional_max_pool2d(empty, 2, 2),
        F.max_pool2d(T.ones(2, 3, 4, 4, device="meta"), 2, return_indices=True),
        F.adaptive_avg_pool2d(T.ones(2, 3, 4, 4, device="meta"), (3, 2)),
    )


@differential
def test_pooling_writes_out(T: Any) -> Any:
    x = signal(T, 2)
    out = T.empty(0, dtype=T.float64)
    return T.nn.functional.avg_pool2d(x, 2, out=out), out


@differential
def test_errors(T: Any) -> Any:
    F = T.nn.functional
    x = T.ones(1, 1, 4, 4)
    return (
        outcome(lambda: F.max_pool2d(x, (2, 2, 2)), "kernel_size must either be a single int"),
        outcome(lambda: F.max_pool2d(x, 2.5), "must be tuple of ints"),
        outcome(lambda: F.max_pool2d(x, 2, 0), "stride should not be zero"),
        outcome(lambda: F.max_pool2d(x, 2, dilation=0), "dilation should be greater than zero"),
        outcome(lambda: F.max_pool2d(x, 2, 1, 2), "pad should be at most half of effective kernel size"),
        outcome(lambda: F.max_pool2d(x[0, 0], 2), "non-empty 3D or 4D"),
        outcome(lambda: F.max_pool2d(x, 7), "Output size is too small"),
        outcome(lambda: F.max_pool2d(x.bool(), 2), "not implemented for"),
        outcome(lambda: F.max_pool3d(T.ones(2, 0, 4, 4, 4), 2), "non-batch dimension 0 has length zero"),
        outcome(lambda: F.max_pool1d(x[0], 5), "Invalid computed output size"),
        outcome(lambda: F.max_pool1d(x[0].long(), 2), "not implemented for"),
        outcome(lambda: F.max_pool1d(x, 2), "Expected 2D or 3D", "Expected"),
        outcome(lambda: F.avg_pool1d(x, 2), "Expected 2 to 3 dimensions"),
        outcome(lambda: F.avg_pool1d(x[0], (2, 2)), "should contain one int"),
        outcome(lambda: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
        outcome(lambda: F.avg_pool2d(x.int(), 2), "not implemented for"),
        outcome(lambda: F.adaptive_avg_pool2d(x, (2, 2, 2)), "output_size must be 2"),
        outcome(lambda: F.adaptive_avg_pool2d(x[0, 0], (2, 2)), "Input dimension should be at least 3"),
        outcome(lambda: F.adaptive_avg_pool2d(x[0, 0], 2), "Expected 3D or 4D tensor"),
        outcome(lambda: F.adaptive_max_pool2d(T.ones(2, 3, 0, 4), 2), "with dimension 2 being empty"),
        outcome(lambda: F.fractional_max_pool2d(x, 2), "requires specifying either an output_size or an output_ratio"),
        outcome(lambda: F.fractional_max_pool2d(x, 5, 2), "too large relative to input"),
        outcome(lambda: F.max_unpool2d(x, x.long() + 100, 2), "Found an invalid max index"),
        outcome(lambda: F.max_unpool2d(x, x.int(), 2), "elements in indices should be type int64"),
        outcome(lambda: F.max_unpool2d(x, x.long(), 2, output_size=(20, 20)), "invalid output_size"),
        outcome(lambda: F.max_unpool2d(x, x.long()[..., :2], 2), "Expected shape of indices to be"),
    )


@differential(tolerance=0.0)
def test_windows_that_equal_known_ones_are_looked_at(T: Any) -> Any:
    """What was worked out for a window serves those that are the same, not those that are merely equal."""
    x, pool = signal(T, 2, dtype="float32"), T.nn.functional.avg_pool2d
    return (
        pool(x, 2),
        outcome(lambda: pool(x, 2.0), "must be tuple of ints"),
        pool(x, (2, 2), (1, 1)),
        outcome(lambda: pool(x, (2.0, 2), (1, 1)), "must be tuple of ints"),
        outcome(lambda: pool(x, 2, 1.0), "must be tuple of ints"),
        pool(x, [2, 1], None, [1, 0]),
        pool(x[:, :, :3], 2),
        outcome(lambda: pool(x[:, :, :1], 2), "Output size is too small"),
    )
