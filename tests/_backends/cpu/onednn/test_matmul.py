"""Matrix products: which layouts oneDNN is told, and the results."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn import kernels
from flambeau._backends.cpu.onednn.constants import BIAS, DST, F32, SRC, WEIGHTS
from flambeau._backends.cpu.onednn.library import Unsupported, get
from tests._backends.cpu.onednn.stand_in import Layout, StandIn

module: Any = importlib.import_module("flambeau._backends.cpu.onednn.matmul")
RNG = np.random.default_rng(0)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


# ----- layouts ------------------------------------------------------------------------------------------------------


def told(stand_in: StandIn, a: Any, b: Any, bias: Any = None) -> list[tuple[Any, Any]]:
    """Shape and strides of the operands and the result in the last question for a product."""
    onednn.matmul(a, b, bias)
    question = [each for each in stand_in.asked if each[0] == "matmul_primitive_desc_create"][-1]
    return [stand_in.layouts[each][:2] for each in question[2:6] if each is not None]


def test_transposed_factor_is_told_by_its_strides(stand_in: StandIn) -> None:
    assert told(stand_in, random(3, 4), random(5, 4).T) == [
        ((3, 4), (4, 1)),
        ((4, 5), (1, 4)),
        ((3, 5), (5, 1)),
    ]


def test_batch_times_matrix_is_one_product(stand_in: StandIn) -> None:
    assert told(stand_in, random(2, 6, 4), random(4, 5), random(5)) == [
        ((12, 4), (4, 1)),
        ((4, 5), (5, 1)),
        ((1, 5), (5, 1)),
        ((12, 5), (5, 1)),
    ]


def test_batch_with_gaps_stays_a_batch(stand_in: StandIn) -> None:
    a, b, result = told(stand_in, random(2, 6, 4)[:, ::2][:, :2], random(4, 5))
    assert a == ((2, 2, 4), (24, 8, 1))
    assert b[0] == (1, 4, 5)
    assert result == ((2, 2, 5), (10, 5, 1))


def test_expanded_batch_is_told_as_one_matrix(stand_in: StandIn) -> None:
    a, b, _ = told(stand_in, np.broadcast_to(random(3, 4), (7, 3, 4)), random(7, 4, 5))
    assert a[0] == (1, 3, 4)
    assert b[0] == (7, 4, 5)


def test_batch_that_no_factor_has_whole_is_copied(stand_in: StandIn) -> None:
    a, b, result = told(stand_in, np.broadcast_to(random(3, 4), (7, 3, 4)), random(4, 5))
    assert (a, b, result) == (((21, 4), (4, 1)), ((4, 5), (5, 1)), ((21, 5), (5, 1)))


@pytest.mark.parametrize("a", [random(6, 8)[::2, ::2], random(3, 4)[::-1], np.broadcast_to(random(4), (3, 4))])
def test_factor_without_rows_or_columns_in_one_piece_is_copied(stand_in: StandIn, a: Any) -> None:
    assert told(stand_in, a, random(4, 5))[0] == ((3, 4), (4, 1))


def test_addend_keeps_its_strides_and_its_repetitions(stand_in: StandIn) -> None:
    a, b = random(2, 3, 4), random(2, 4, 5)
    assert told(stand_in, a, b, random(2, 5, 3).swapaxes(1, 2))[2] == ((2, 3, 5), (15, 1, 3))
    assert told(stand_in, a, b, np.broadcast_to(random(5), (2, 3, 5)))[2][0] == (1, 1, 5)


def test_arguments_are_passed_in_the_order_of_their_layouts(stand_in: StandIn) -> None:
    a, b, bias = random(3, 4), random(4, 5), random(5)
    for number, shape in ((SRC, (3, 4)), (WEIGHTS, (4, 5)), (BIAS, (1, 5)), (DST, (3, 5))):
        stand_in.wanted[number] = Layout(shape, (shape[1], 1), F32)
    result = onednn.matmul(a, b, bias)
    addresses = [each.ctypes.data for each in (a, b, bias, result)]
    assert stand_in.executed[-1] == list(zip((SRC, WEIGHTS, BIAS, DST), addresses, strict=True))


@pytest.mark.parametrize(
    ("a", "b", "bias"),
    [
        (random(4), random(4, 5), None),
        (random(0, 4), random(4, 5), None),
        (random(3, 4), random(4, 5).astype(np.float16), None),
        (random(3, 4).astype(np.float64), random(4, 5).astype(np.float64), None),
        (random(3, 4).astype(np.int8), random(4, 5).astype(np.uint8), None),
        (random(3, 4), random(4, 5), random(5).astype(np.float16)),
        (random(3, 4), random(4, 5), random(2, 3, 5)),
        (random(*(1,) * 11, 3, 4), random(4, 5), None),
    ],
)
def test_what_is_left_to_other_kernels(stand_in: StandIn, a: Any, b: Any, bias: Any) -> None:
    with pytest.raises(Unsupported):
        onednn.matmul(a, b, bias)


def test_inexact_integers_are_left_to_other_kernels(stand_in: StandIn) -> None:
    stand_in.multiplies_bytes_exactly = False
    with pytest.raises(Unsupported, match="not exact"):
        onednn.matmul(np.ones((2, 2), np.int8), np.ones((2, 2), np.int8))


def test_shapes_that_do_not_fit(stand_in: StandIn) -> None:
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(5, 4\) cannot be multiplied"):
        onednn.matmul(random(3, 4), random(5, 4))
    with pytest.raises(ValueError, match="broadcast"):
        onednn.matmul(random(2, 3, 4), random(3, 4, 5))


# ----- results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "bias"),
    [
        (random(3, 4), random(4, 5), None),
        (random(1, 4), random(4, 1), random(1)),
        (random(40, 30).T, random(50, 40).T, random(50)),
        (random(2, 30, 64), random(64, 48), random(48)),
        (random(2, 1, 3, 4), random(6, 4, 5), None),
        (random(2, 3, 4), random(2, 4, 5), random(2, 3, 5)),
        (random(3, 4), random(4, 5), random(3, 1)),
        (random(6, 8)[::2, ::2], random(8, 5)[::2], None),
        (random(6, 4)[::-2], random(4, 5)[:, ::-1], random(10)[::-2]),
        (np.broadcast_to(random(3, 4), (7, 3, 4)), random(4, 5), None),
        (np.broadcast_to(random(3, 4), (7, 3, 4)), random(7, 4, 5), None),
        (random(2, 8, 6, 16).swapaxes(1, 2), random(2, 8, 6, 16).transpose(0, 2, 3, 1), None),
    ],
)
def test_products(dnn: Any, a: Any, b: Any, bias: Any) -> None:
    expected = a.astype(np.float64) @ b
    if bias is not None:
        expected = expected + bias
    result = dnn.matmul(a, b, bias)
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_not_finite_elements_stay(dnn: Any) -> None:
    a = np.array([[np.nan, 1], [np.inf, 1], [1, 2]], np.float32)
    np.testing.assert_array_equal(dnn.matmul(a, np.eye(2, dtype=np.float32)[:, :1]), [[np.nan], [np.inf], [1]])


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_products_of_halves(dnn: Any, dtype: Any) -> None:
    a, b = random(8, 16).astype(dtype), random(16, 8).astype(dtype)
    try:
        result = dnn.matmul(a, b)
    except Unsupported as reason:
        pytest.skip(str(reason))
    assert result.dtype == dtype
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(result.astype(np.float32), expected, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_products_of_integers_are_exact(dnn: Any, dtype: Any) -> None:
    if not get().multiplies_bytes_exactly:
        pytest.skip("not on this processor")
    limits = np.iinfo(dtype)
    a = RNG.integers(limits.min, limits.max, (33, 70), endpoint=True).astype(dtype)
    b = RNG.integers(-128, 128, (19, 70)).astype(np.int8).T
    a[0], b[:, 0] = limits.max, -128
    result = dnn.matmul(a, b)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, a.astype(np.int64) @ b.astype(np.int64))


def test_a_matrix_that_is_multiplied_again_and_again_is_reordered_once(dnn: Any) -> None:
    right = random(40, 48)
    multiply = onednn.Multiplier(16, right.T)
    for _ in range(3):
        left, out = random(16, 48), np.empty((16, 40), np.float32)
        multiply(left, out)
        np.testing.assert_allclose(out, left @ right.T, rtol=1e-4, atol=1e-4)
    with pytest.raises(Unsupported):
        onednn.Multiplier(16, right.astype(np.float64))


# ----- batches ------------------------------------------------------------------------------------------------------


def laid(layout: str, *shape: int) -> Any:
    """Random matrices that lie row by row, column by column, or with gaps between their rows."""
    if layout == "columns":
        return random(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2)
    return random(*shape) if layout == "rows" else random(*shape[:-1], shape[-1] + 3)[..., :-3]


@pytest.mark.parametrize("sizes", [(24, 49, 49, 32), (250, 9, 9, 32), (3, 100, 64, 90), (2, 3, 70, 71, 72)])
@pytest.mark.parametrize("left", ["rows", "columns", "part"])
@pytest.mark.parametrize("right", ["rows", "columns", "part"])
def test_products_of_batches(dnn: Any, sizes: tuple[int, ...], left: str, right: str) -> None:
    *batch, rows, length, columns = sizes
    a, b = laid(left, *batch, rows, length), laid(right, *batch, length, columns)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    found = kernels.products_of_batch(a, b)
    if found is None:  # a batch of small matrices
        assert right != "columns"
        assert rows * length * columns < 64**3
        return
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    out = np.full(expected.shape, np.nan, np.float32)
    assert kernels.products_of_batch(a, b, out) is out
    np.testing.assert_array_equal(out, found)


def test_batches_that_are_left_to_others(dnn: Any) -> None:
    a, b = random(3, 100, 64), random(3, 64, 90)
    assert kernels.products_of_batch(a.astype(np.float64), b.astype(np.float64)) is None
    assert kernels.products_of_batch(a, b[:1]) is None
    assert kernels.products_of_batch(np.broadcast_to(a[:1], a.shape), b) is None
    assert kernels.products_of_batch(a[..., ::2], b[:, ::2]) is None
    assert kernels.products_of_batch(a, b, np.empty((3, 90, 100), np.float32).swapaxes(1, 2)) is None
    assert kernels.products_of_batch(random(2, 20, 1025), random(2, 1025, 20)) is None
    assert kernels.products_of_batch(random(0, 100, 64), random(0, 64, 90)) is None


def test_a_given_result_is_written_where_operands_are_copied(dnn: Any) -> None:
    a, b = random(4, 60)[:, ::2], random(30, 5)
    out = np.zeros((4, 5), np.float32)
    assert dnn.matmul(a, b, result=out) is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)
