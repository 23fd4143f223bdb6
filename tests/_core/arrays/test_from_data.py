"""Arrays from Python data, compared with `torch.tensor(data)`."""

from __future__ import annotations

import array
import collections
import decimal
import enum
import fractions
import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau._core.arrays.from_data import array_from_data

FLOAT32 = np.dtype(np.float32)
DTYPES = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for name in (
        "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip


class Leaf:
    """A tensor inside the data."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._array = tensor.numpy()


class Halves:
    """A sequence by protocol only."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, position: int) -> float:
        if position >= 2:
            raise IndexError(position)
        return position + 0.5


class IndexOnly:
    def __index__(self) -> int:
        return 3


class FloatOnly:
    def __float__(self) -> float:
        return 1.5


class Colour(enum.IntEnum):
    RED = 1


def with_leaves(data: Any) -> Any:
    if isinstance(data, torch.Tensor):
        return Leaf(data)
    if type(data) in (list, tuple):
        return type(data)(with_leaves(item) for item in data)
    return data


def of_pytorch(data: Any, dtype: str | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = torch.tensor(data, dtype=None if dtype is None else getattr(torch, dtype))
        except Exception as error:
            return type(error), str(error)
    values = result.tolist()
    return str(result.dtype).removeprefix("torch."), tuple(result.shape), values


def of_flambeau(data: Any, dtype: str | None) -> Any:
    try:
        result = array_from_data(with_leaves(data), None if dtype is None else DTYPES[dtype], FLOAT32)
    except Exception as error:
        return type(error), str(error)
    assert type(result) is np.ndarray
    values = (result.astype(np.float32) if result.dtype == DTYPES["bfloat16"] else result).tolist()
    return result.dtype.name, result.shape, values


def same(left: Any, right: Any) -> bool:
    """Equality in which nan equals nan and 1 differs from 1.0 and True."""
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (float, complex)):
        return repr(left) == repr(right)
    return type(left) is type(right) and bool(left == right)


def check(data: Any, dtype: str | None = None) -> None:
    expected, actual = of_pytorch(data, dtype), of_flambeau(data, dtype)
    if isinstance(expected[0], type) and isinstance(actual[0], type):
        assert actual[0] is expected[0], f"{data!r} as {dtype}: {expected} in PyTorch, {actual} here"
        phrase = expected[1].partition(". ")[0]
        assert phrase.partition(", attempted")[0] in actual[1], (
            f"{data!r} as {dtype}: {expected[1]!r} is not in {actual[1]!r}"
        )
    else:
        assert same(expected, actual), f"{data!r} as {dtype}: {expected} in PyTorch, {actual} here"


LEAVES: list[Any] = [
    True, False, 0, 1, -1, 300, -300, 2**31, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 10**400,
    1.5, -0.5, 127.9, -1.5, 0.1, 1e5, 1e20, 1e39, math.inf, -math.inf, math.nan, 1j, 1 + 2j, 0j, 1e39 + 1j, Colour.RED,
    np.float64(1.5), np.float32(1.5), np.float16(1.5), np.int8(1), np.int32(-2), np.uint8(200), np.bool_(True),
    np.complex64(1 + 1j), np.complex128(1j),
    torch.tensor(2), torch.tensor(2, dtype=torch.int8), torch.tensor(True), torch.tensor(1.5),
    torch.tensor(1.5, dtype=torch.float16), torch.tensor(1 + 1j), torch.tensor([3]), torch.tensor([[3]]),
]  # fmt: skip
STRANGE: list[Any] = [
    None, "a", object(), {}, {1: 2}, {1, 2}, slice(1), fractions.Fraction(1, 2), decimal.Decimal("1.5"), IndexOnly(),
    FloatOnly(),
]  # fmt: skip
NESTED: list[Any] = [
    [], (), [[]], [[], []], [[[]], [[]]], [[1, 2], [3, 4]], ((1, 2), [3, 4.0]), [[[1]], [[2]]], [[True, 2], [3.5, 4]],
    range(5), [range(2), range(2)], collections.deque([1, 2]), array.array("f", [1, 2]), array.array("d", [1, 2]),
    [array.array("d", [1, 2])], bytearray(b"ab"), [bytearray(b"ab")], memoryview(b"ab"), [memoryview(b"ab")], Halves(),
    [Halves(), Halves()], [[1, 2], range(2)], [Halves(), [1, 2]],
    [[1, 2], [3]], [[1, 2], [3, 4, 5]], [[[1, 2], [3, 4]], [[5, 6], [7]]], [[[1]], [[]]], [[1], []],
    [1, [2]], [1.5, [2]], [[1], 2], [[[1], [2]], [[3], 4]], [[1, 2], [3, [4]]], [1, 2, 3, [1]], [True, [1]],
    ["a"], [["ab", "c"]], [1, "a"], ["a", 1], [[1, 2], "ab"], [[1, 2], [3, "a"]], [[1, 2], 3, "a"],
    [1, None], [1.0, None], [[1, 2], [None, 3]], [[1, 2], None], [None, [1, 2]], [[1, 2], object()],
    [np.array([1.5, 2])], [np.array([1, 2], np.int32), np.array([3, 4], np.int32)], [np.array([[1]]), np.array([[2]])],
    [np.array([1, 2], np.float32), [1, 2]], [[1, 2], np.array([1, 2], np.float64)], [np.array([1, 2]), np.array([1])],
    [np.array([1, 2], np.float16), np.array([1, 2], np.float32)], [np.array(1.5)], [np.zeros(0)],
    [torch.tensor([1, 2]), torch.tensor([3, 4])], [torch.tensor([1.5, 2.5])], [torch.tensor([])],
    [3, torch.tensor([1])],
    [[torch.tensor(1), 2], [3, torch.tensor(4.0)]], [1, 2.5, True, 1 + 1j], [2**60 + 1, 1.5],
    [2**100, 1.5], [10**400, 1.5],
    [np.uint16(3), 1], [np.uint16(3), 1.5], [np.uint8(3), np.int8(1)], [np.float64(1), 1j],
    [np.float16(1), 1j], [np.uint16(1), np.uint32(1)],
]  # fmt: skip
ARRAYS: list[Any] = [
    np.array([1, 2]), np.array(1.5), np.zeros((2, 0), np.int8), np.array([300, -1]), np.array([1 + 1j]),
    np.array([True, False]), np.arange(6, dtype=np.uint16).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T, np.array(["a"]),
    np.array([None]), np.array([1], "datetime64[s]"), torch.tensor([1, 2]), torch.tensor(1.5),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [None, *DTYPES])
@pytest.mark.parametrize("wrap", [lambda leaf: leaf, lambda leaf: [leaf], lambda leaf: [[1, 0], [leaf, 1]]])
def test_single_leaves(dtype: str | None, wrap: Any) -> None:
    for leaf in LEAVES:
        if not _is_pytorch_defect(leaf, dtype):
            check(wrap(leaf), dtype)


def _is_pytorch_defect(leaf: Any, dtype: str | None) -> bool:
    """PyTorch fills uint64 from Python ints only."""
    return dtype == "uint64" and not isinstance(leaf, int)


@pytest.mark.parametrize("dtype", [None, "bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_strange_leaves(dtype: str | None) -> None:
    for leaf in STRANGE:
        check(leaf, dtype)
        check([leaf], dtype)
        check([[1, 2], [3, leaf]], dtype)


@pytest.mark.parametrize("dtype", [None, "bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_nested_data(dtype: str | None) -> None:
    for data in NESTED:
        check(data, dtype)


@pytest.mark.parametrize("dtype", [None, "bool", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_arrays(dtype: str | None) -> None:
    for data in ARRAYS:
        check(data, dtype)


@pytest.mark.parametrize("wrong", [np.datetime64("2020-01-01"), np.str_("a"), np.array([None])])
def test_numpy_types_without_a_tensor_type(wrong: Any) -> None:
    for data in (wrong, [wrong]):
        assert of_pytorch(data, None)[0] in (TypeError, ValueError)
        assert of_flambeau(data, None)[0] is of_pytorch(data, None)[0]


@pytest.mark.parametrize(
    ("data", "dtype", "error", "place"),
    [
        ([[1, 2], [3, None]], None, RuntimeError, "Could not infer dtype of NoneType at position [1][1]"),
        ([[1, 2], [3, 4, 5]], None, ValueError, "(got 3): the sequence at position [1]"),
        ([[[1], [2]], [[3], 4]], None, TypeError, "found int at position [1][1]"),
        ([0, 1, 300], "uint8", RuntimeError, "300 at position [2]; uint8 holds 0 to 255"),
        ([0.0, math.nan], "int32", RuntimeError, "nan at position [1]"),
        ([1, 2**63], None, ValueError, "9223372036854775808 at position [1]"),
        ([1.0, 10**400], None, OverflowError, "int too large to convert to float at position [1]"),
        ([[1.0], ["x"]], "float32", TypeError, "must be real number, not str at position [1][0]"),
        ([1, 2j], "float32", TypeError, "must be real number, not complex at position [1]"),
        ([torch.tensor([1.0, 2.0])], None, ValueError,
        "found shape [2] at position [0]; join tensors with torch.stack"),
    ],
)  # fmt: skip
def test_errors_name_the_position(data: Any, dtype: str | None, error: type[Exception], place: str) -> None:
    kind, message = of_flambeau(data, dtype)
    assert kind is error
    assert place in message


@pytest.mark.parametrize("data", [[[], [1]], [[], 1]])
def test_data_that_pytorch_drops_is_an_error(data: Any) -> None:
    assert of_pytorch(data, None)[1] == (2, 0)
    assert of_flambeau(data, None)[0] in (ValueError, TypeError)


def test_a_list_that_contains_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        array_from_data(endless, None, FLOAT32)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_default_float(name: str) -> None:
    result = array_from_data([1.5, 2], None, DTYPES[name])
    assert result.dtype == DTYPES[name]
    assert array_from_data(1.5, None, DTYPES[name]).dtype == DTYPES[name]
    expected = {"float16": "complex32", "float64": "complex128"}.get(name, "complex64")
    assert array_from_data([1j], None, DTYPES[name]).dtype.name == expected


def test_the_result_is_a_writable_copy_in_the_same_memory_order() -> None:
    source = np.arange(6.0).reshape(2, 3).T
    for data in (source, Leaf(torch.from_numpy(source))):
        result = array_from_data(data, None, FLOAT32)
        assert not np.shares_memory(result, source)
        assert result.strides == source.strides
        assert result.flags.writeable
    assert torch.tensor(source).stride() == (1, 3)


def test_arrays_that_pytorch_refuses() -> None:
    class Grid:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([[1, 2]], np.int16)

    assert array_from_data(np.arange(3)[::-1], None, FLOAT32).tolist() == [2, 1, 0]
    swapped = array_from_data(np.array([1.5], ">f4"), None, FLOAT32)
    assert swapped.dtype.isnative
    assert swapped.tolist() == [1.5]
    assert array_from_data(Grid(), None, FLOAT32).dtype == np.int16
    assert array_from_data([Grid(), Grid()], None, FLOAT32).tolist() == [[[1, 2]], [[1, 2]]]


numbers = st.one_of(
    st.booleans(), st.integers(-(2**65), 2**65), st.integers(-300, 300), st.floats(), st.complex_numbers(),
    st.floats(width=32).map(np.float32), st.integers(-128, 127).map(np.int8),
)  # fmt: skip
nested = st.recursive(numbers, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
rectangular = st.tuples(st.integers(1, 3), st.integers(1, 3), st.lists(numbers, min_size=9, max_size=9)).map(
    lambda drawn: [[drawn[2][row * drawn[1] + column] for column in range(drawn[1])] for row in range(drawn[0])]
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(rectangular, st.sampled_from([None, *(name for name in DTYPES if name != "uint64")]))
def test_any_rectangle_of_numbers(data: Any, dtype: str | None) -> None:
    check(data, dtype)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(nested)
def test_any_nest_of_numbers_gives_a_tensor_or_a_clear_error(data: Any) -> None:
    expected, actual = of_pytorch(data, None), of_flambeau(data, None)
    if isinstance(actual[0], type):
        assert actual[0] in (TypeError, ValueError, OverflowError, RuntimeError)
    else:
        assert same(expected, actual)
