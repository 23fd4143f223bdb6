"""Strides, addresses, data types and buffers: what needs no library."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._backends.cpu.onednn import memory
from flambeau._backends.cpu.onednn.constants import BF16, F16, F32, S8, S32, U8
from flambeau._backends.cpu.onednn.library import Unsupported
from tests._backends.cpu.onednn.stand_in import Layout, StandIn


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (np.float32, F32),
        (np.float16, F16),
        (ml_dtypes.bfloat16, BF16),
        (np.int8, S8),
        (np.uint8, U8),
        (np.int32, S32),
    ],
)
def test_data_types(dtype: Any, number: int) -> None:
    assert memory.data_type(np.dtype(dtype)) == number


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.complex64, np.dtype(">f4"), np.dtype(">i4")])
def test_other_data_types_are_unsupported(dtype: Any) -> None:
    with pytest.raises(Unsupported, match="no data type"):
        memory.data_type(np.dtype(dtype))


def test_operands_have_one_floating_dtype() -> None:
    single, half = np.ones(1, np.float32), np.ones(1, np.float16)
    assert memory.common_data_type(single, None, single) == F32
    with pytest.raises(Unsupported, match="one dtype"):
        memory.common_data_type(single, half)
    with pytest.raises(Unsupported, match="does not compute in int8"):
        memory.common_data_type(np.ones(1, np.int8))


def test_address_is_that_of_the_first_element() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (array, array[1:], array[::-1], array.T, array[:0], np.array(3, np.float32)):
        assert memory.address(view) == view.ctypes.data


BASE = np.zeros((4, 6, 8), np.float32)


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (BASE, (48, 8, 1)),
        (BASE.T, (1, 8, 48)),
        (BASE[::2, 1:, ::4], (96, 8, 4)),
        (BASE[:, :1], (48, 8, 1)),
        (BASE[:, :1, ::-1][:, :, :1], (48, 1, 1)),  # the strides of sizes 1 say nothing
        (np.zeros((), np.float32), ()),
        (BASE[::-1], None),
        (np.broadcast_to(BASE[0], (3, 6, 8)), None),
        (np.lib.stride_tricks.as_strided(BASE, (3, 3), (4, 4)), None),
        (np.zeros((3, 2), np.dtype("f4, i1"))["f0"], None),
    ],
)
def test_strides_in_elements(array: Any, strides: Any) -> None:
    assert memory.element_strides(array.shape, array.strides, array.itemsize) == strides


@pytest.mark.parametrize("array", [BASE[::-1], np.broadcast_to(BASE[0] + 1, (3, 6, 8)), BASE[::2, :, ::3]])
def test_prepared_arrays_have_the_same_content(array: Any) -> None:
    found, strides = memory.prepared(array)
    assert np.array_equal(found, array)
    assert tuple(each * found.itemsize for each in strides) == found.strides


def test_unaligned_array_is_copied() -> None:
    raw = np.zeros(41, np.uint8)
    raw[1:5] = np.array([1.5], np.float32).view(np.uint8)
    array = raw[1:].view(np.float32)
    found, _ = memory.prepared(array)
    assert memory.address(found) % 4 == 0
    assert found[0] == 1.5


def test_empty_and_too_deep_arrays_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="empty"):
        memory.prepared(np.zeros((3, 0), np.float32))
    with pytest.raises(Unsupported, match="at most 12"):
        memory.prepared(np.zeros((1,) * 13, np.float32))


def test_new_arrays_have_dense_strides() -> None:
    for shape in ((2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 1, 1, 5)):
        for last in (False, True):
            array = memory.new_array(shape, np.float32, last)
            assert array.shape == shape
            assert array.strides == tuple(4 * each for each in memory.dense_strides(shape, last))
    assert memory.dense_strides((2, 3, 4, 5), True) == (60, 1, 15, 3)


def test_descriptors_are_made_once(stand_in: StandIn) -> None:
    first = memory.descriptor((2, 3), (3, 1), F32)
    assert memory.descriptor((2, 3), (3, 1), F32) is first
    free = memory.descriptor((2, 3), None, BF16)
    assert stand_in.layouts[first.value] == Layout((2, 3), (3, 1), F32)
    assert stand_in.layouts[free.value] == Layout((2, 3), None, BF16)
    assert len(stand_in.asked) == 2


def test_buffers_are_aligned_and_used_again() -> None:
    pool = memory.BufferPool(most=2)
    small, large = pool.take(100), pool.take(1000)
    assert small.address % 64 == large.address % 64 == 0
    assert small.address + small.size <= memory.address(small.owner) + small.owner.size
    pool.give(large)
    pool.give(small)
    assert pool.take(50) is small  # the smallest that is large enough
    assert pool.take(50) is large
    pool.give(small)
    other = pool.take(5000)  # takes the place of one that is too small
    pool.give(other)
    assert pool.take(10) is other
    for _ in range(5):
        pool.give(memory.new_buffer(10))
    assert len(pool._idle) == 2
    pool.clear()
    assert pool.take(10) is not other
