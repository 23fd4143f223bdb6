"""Indexing on NumPy arrays, compared with PyTorch's `x[index]` over generated indices and shapes."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau._core.device import CPU
from flambeau._core.kind import kind_of_array
from flambeau._ops.index.indexing import (
    advanced_get,
    advanced_put,
    assign_to_view,
    basic_index,
    indexed_shape,
    plan_index,
)


class Leaf:
    """What an index holds where the user wrote a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._array = tensor.numpy()
        self._kind = kind_of_array(self._array.dtype, CPU)

    def __index__(self) -> int:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._array.item())

    def __getitem__(self, index: int) -> Leaf:
        raise AssertionError("a tensor leaf is never read as a sequence")


class Two:
    def __index__(self) -> int:
        return 2


def with_leaves(index: Any) -> Any:
    """`index` with PyTorch's tensors replaced by leaves."""
    if isinstance(index, torch.Tensor):
        return Leaf(index)
    if isinstance(index, slice):
        return slice(with_leaves(index.start), with_leaves(index.stop), with_leaves(index.step))
    if type(index) in (list, tuple):
        return type(index)(with_leaves(item) for item in index)
    return index


def read(array: np.ndarray, index: Any) -> np.ndarray:
    plan = plan_index(with_leaves(index), array.shape)
    view = array[plan.basic]
    assert isinstance(view, np.ndarray)
    if plan.advanced is None:
        assert np.shares_memory(view, array) or not view.size
        return view
    assert len(plan.advanced) == view.ndim
    result = advanced_get(view, plan.advanced)
    assert result.shape == indexed_shape(view.shape, plan.advanced)
    assert not np.shares_memory(result, array)
    return result


def write(array: np.ndarray, index: Any, values: np.ndarray) -> None:
    plan = plan_index(with_leaves(index), array.shape)
    view = array[plan.basic]
    if plan.advanced is None:
        assign_to_view(view, values)
    else:
        advanced_put(view, plan.advanced, values)


def outcome(action: Callable[[], Any]) -> Any:
    """The result, or the exception's type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return action()
        except Exception as error:
            return type(error)


def strides_that_matter(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The strides of a result; none if a dimension of size 0 or 1 makes them arbitrary."""
    return [] if min(shape, default=2) < 2 else list(strides)


def disagreement(source: torch.Tensor, index: Any) -> str | None:
    """How reading `source[index]` differs from PyTorch, if it does."""
    expected = outcome(lambda: source[index])
    actual = outcome(lambda: read(source.numpy(), index))
    if isinstance(expected, type) or isinstance(actual, type):
        same = expected is actual
        return None if same else f"shape {tuple(source.shape)}, {index!r}: {expected} in PyTorch, {actual} here"
    same = (
        actual.shape == tuple(expected.shape)
        and np.array_equal(actual, expected.numpy())
        and strides_that_matter(actual.shape, tuple(stride // actual.itemsize for stride in actual.strides))
        == strides_that_matter(actual.shape, expected.stride())
    )
    if same:
        return None
    return (
        f"shape {tuple(source.shape)}, {index!r}: {tuple(expected.shape)} {expected.stride()} {expected.tolist()} in "
        f"PyTorch, {actual.shape} {actual.strides} {actual.tolist()} here"
    )


def numbered(*shape: int) -> torch.Tensor:
    return torch.arange(int(np.prod(shape))).reshape(shape)


SOURCES = {
    "scalar": numbered(),
    "vector": numbered(3),
    "matrix": numbered(2, 3),
    "cube": numbered(2, 3, 4),
    "no rows": numbered(0, 3),
    "no columns": numbered(3, 0),
    "four dims": numbered(3, 1, 2, 2),
    "transposed": numbered(4, 3, 2).permute(2, 1, 0),
    "swapped": numbered(2, 4, 3).transpose(1, 2),
    "strided": numbered(4, 6)[::2, ::2],
    "expanded": numbered(3, 1).expand(3, 4),
}
ITEMS: list[Any] = [
    0, -1, 2, 7, -7, Two(), np.int64(1), np.uint8(1),
    slice(None), slice(1, None), slice(None, None, 2), slice(5, 9), slice(-2, None), slice(2, 1), slice(None, 2**70),
    slice(torch.tensor(0), np.int32(2)), slice(None, None, torch.tensor(2)), slice(True, Two()),
    None, ..., True, False,
    torch.tensor(1), torch.tensor(-1, dtype=torch.int8), torch.tensor(True), torch.tensor(False),
    torch.tensor(1, dtype=torch.uint8), torch.tensor(0, dtype=torch.uint8),
    torch.tensor([0, 1]), torch.tensor([1, 0, -1]), torch.tensor([[0], [1]]),
    torch.tensor([[0, 1], [1, 0], [1, 1]]).t(),
    torch.tensor([0, 0], dtype=torch.int32), torch.tensor([], dtype=torch.int64), torch.tensor([9]), torch.tensor([-9]),
    torch.tensor([True, False]), torch.tensor([True, False, True]), torch.tensor([False] * 4), torch.tensor([True]),
    torch.tensor([[True, False, True], [True, True, False]]), torch.ones(3, 4, dtype=torch.bool),
    torch.zeros(0, 3, dtype=torch.bool), torch.tensor([1, 0], dtype=torch.uint8), torch.ones(2, 3, 4, dtype=torch.bool),
    [0, 1], [[0, 1], [1, 0]], [], [True, False], [True, 0], [1.5], [-1], range(2), (1, 0),
    [torch.tensor(0), torch.tensor(1)], np.array(1), np.array([1, 0]), np.array([1.0, 0.0]), np.array([True, False]),
    np.array([1, 0], dtype=np.uint8), np.array([1, 0], dtype=np.uint32), np.array(1.0),
]  # fmt: skip
ERRONEOUS: list[Any] = [
    "a", "", b"a", 1.0, 1j, object(), {0}, {0: 1}, np.float32(1), np.bool_(True), 2**70, -(2**70), NotImplemented,
    torch.tensor(1.0), torch.tensor([1.0]), torch.tensor([1, 0], dtype=torch.int8),
    torch.tensor([1], dtype=torch.int16),
    torch.tensor([1], dtype=torch.uint16), torch.tensor([1], dtype=torch.bfloat16).float(), torch.tensor([]),
    slice(None, None, -1), slice(None, None, 0), slice(1.0, 2), slice("a"), slice(torch.tensor(0.0), 1),
    slice(torch.tensor([0, 1]), 1), [2**70], [1j], [[0], [0, 1]], [0, [1, 2]],
]  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_items_and_pairs_read_as_in_pytorch(name: str) -> None:
    source = SOURCES[name]
    pairs = list(itertools.product(ITEMS, repeat=2))
    if name not in ("matrix", "cube"):  # all pairs on the plain layouts, a fixed sample on the others
        pairs = random.Random(name).sample(pairs, 1000)
    assert [
        line for index in [*ITEMS, *((item,) for item in ITEMS), *pairs] if (line := disagreement(source, index))
    ] == []


@pytest.mark.parametrize("name", ["cube", "four dims", "transposed", "swapped"])
def test_longer_indices_read_as_in_pytorch(name: str) -> None:
    generator = random.Random(name)
    indices = [tuple(generator.choices(ITEMS, k=generator.choice((3, 3, 4, 5)))) for _ in range(1500)]
    assert [line for index in indices if (line := disagreement(SOURCES[name], index))] == []


@pytest.mark.parametrize("name", ["vector", "cube"])
def test_erroneous_items_raise_as_in_pytorch(name: str) -> None:
    source = SOURCES[name]
    indices = [*ERRONEOUS, *((item,) for item in ERRONEOUS), *((None, item) for item in ERRONEOUS)]
    assert [line for index in indices if (line := disagreement(source, index))] == []


@pytest.mark.parametrize(
    "index",
    [
        [slice(0, 1)], [None], [0, None], [...], [[0, 1], [1, 0]], ["a"], [0, [1]], [[]],
        [slice(0, 1), 0], [[0]] * 31, [[0]] * 32,
        [torch.tensor(0), torch.tensor(1)], [torch.tensor([0, 1]), torch.tensor([1, 0])], [torch.tensor([0, 1])],
        list(range(2)) * 20, (0, [torch.tensor(1.5)]), (0, [None]), (0, [0, slice(None)]), (..., ..., None),
        (..., 0, ..., 0), (0, ..., 0, ..., 0), (..., ..., torch.tensor([0])), (0, 0, ..., ..., torch.tensor([0])),
        np.array(True), (0, np.array(False)),
    ],
)  # fmt: skip
def test_lists_as_tuples_and_repeated_ellipses(index: Any) -> None:
    assert disagreement(SOURCES["cube"], index) is None


MESSAGES: list[tuple[tuple[int, ...], Any, type[Exception], str]] = [
    ((3,), 5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ((3, 4), (0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    ((3,), torch.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ((3, 3), (0, 1, 2), IndexError, "too many indices for tensor of dimension 2"),
    ((3,), slice(None, None, -1), ValueError, "step must be greater than zero"),
    ((3,), slice(None, None, 0), ValueError, "slice step cannot be zero"),
    ((3,), slice(1.5, 2), TypeError, "slice indices must be integers or None or have an __index__ method"),
    (
        (3,), torch.tensor([True, False]), IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at index 0",
    ),
    (
        (2, 3, 4), (0, slice(None), torch.tensor([True])), IndexError,
        "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [3, 4] at index 1",
    ),
    ((3,), torch.tensor([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (
        (3, 3), (torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError,
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    ((), 0, IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()`"),
    ((), slice(None), IndexError, "slice() cannot be applied to a 0-dim tensor."[:-1]),
    ((), (0,), IndexError, "too many indices for tensor of dimension 0"),
    ((3,), 1.5, IndexError, "None and long or byte Variables are valid indices (got float)"),
    ((3,), np.float32(1), IndexError, "valid indices (got numpy.float32)"),
    ((3,), "a", TypeError, "new(): invalid data type 'str'"),
    ((3,), 2**70, ValueError, "Overflow when unpacking long long"),
    ((0, 3), torch.tensor([0]), IndexError, "index is out of bounds for dimension with size 0"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "index", "error", "phrase"), MESSAGES)
def test_messages_contain_pytorchs_phrase(
    shape: tuple[int, ...], index: Any, error: type[Exception], phrase: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as ours:
            read(np.zeros(shape), index)
        with pytest.raises(error) as theirs:
            torch.zeros(shape)[index]
    assert phrase in str(ours.value)
    assert phrase in str(theirs.value)


def test_messages_name_the_dimension_of_the_view_and_the_fix() -> None:
    with pytest.raises(
        IndexError, match=r"index 5 is out of bounds for dimension 1 with size 3 \(shape \[2, 3\]; valid"
    ):
        read(np.zeros((2, 3)), (slice(None), torch.tensor([5])))
    with pytest.raises(IndexError, match=r"got float32 of shape \[2\]\); convert it with \.long\(\)"):
        read(np.zeros(2), torch.tensor([0.0, 1.0]))


def test_deprecated_forms_warn() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        read(np.zeros(2), torch.tensor([1, 0], dtype=torch.uint8))
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        read(np.zeros((2, 2)), [[0, 1], [1, 0]])


# Writing


def value_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes to assign to a selection of `shape`: fitting ones, broadcasting ones, and ones that may not fit."""
    ones = tuple(1 for _ in shape)
    return [
        (), (1,), shape, (1, 1, *shape), ones, shape[1:], (*shape[:1], *ones[1:]), (*shape, 1), (5,), (2, *shape),
    ]  # fmt: skip


def write_disagreement(source: torch.Tensor, index: Any, shape: tuple[int, ...]) -> str | None:
    expected_array, actual_array = source.clone(), source.clone().numpy()
    values = torch.arange(int(np.prod(shape))).reshape(shape) + 100

    expected = outcome(lambda: expected_array.__setitem__(index, values))
    actual = outcome(lambda: write(actual_array, index, values.numpy()))
    if expected is actual and np.array_equal(expected_array.numpy(), actual_array):
        return None
    return f"{tuple(source.shape)}[{index!r}] = {shape}: {expected} in PyTorch, {actual} here, {actual_array.tolist()}"


@pytest.mark.parametrize("name", ["scalar", "vector", "matrix", "cube", "no rows", "transposed"])
def test_writes_as_in_pytorch(name: str) -> None:
    source = SOURCES[name]
    generator = random.Random(name)
    # `x[False] = values` and `x[True] = values` return early in PyTorch, before values are looked at.
    # A uint8 mask cannot be filled with one number there, though it can be read and assigned.
    items = [item for item in ITEMS if getattr(item, "dtype", None) not in (torch.uint8, np.uint8)]
    single = [item for item in items if not isinstance(item, bool)]
    pairs = generator.sample(list(itertools.product(items, repeat=2)), 150)
    triples = [tuple(generator.choices(items, k=3)) for _ in range(150)]
    lines = []
    for index in [*single, *pairs, *triples]:
        selected = outcome(lambda index=index: source[index])
        shape = (2,) if isinstance(selected, type) else tuple(selected.shape)
        if _writes_twice(source, index):
            continue
        lines += [write_disagreement(source, index, values) for values in value_shapes(shape)]
    assert len(lines) > 500
    assert [line for line in lines if line] == []


def _writes_twice(source: torch.Tensor, index: Any) -> bool:
    """Whether an element is selected several times: which value stays is not defined then."""
    selected = outcome(lambda: torch.arange(source.numel()).reshape(source.shape)[index])
    return not isinstance(selected, type) and selected.unique().numel() != selected.numel()


def test_uint8_mask_can_be_written() -> None:
    array = np.zeros((3, 2))
    with pytest.warns(UserWarning, match=r"torch\.uint8"):
        write(array, torch.tensor([1, 0, 1], dtype=torch.uint8), np.array(7.0))
    assert array.tolist() == [[7.0, 7.0], [0.0, 0.0], [7.0, 7.0]]


WRITE_MESSAGES: list[tuple[Any, tuple[int, ...], str]] = [
    (0, (2, 3), "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1."),
    (0, (2, 3, 4),
    "the number of sizes provided (2) must be greater or equal to the number of dimensions in the tensor (3)"),
    ([0, 1], (5, 3, 4), "value tensor of shape [5, 3, 4] cannot be broadcast to indexing result of shape [2, 3, 4]"),
]  # fmt: skip


@pytest.mark.parametrize(("index", "shape", "phrase"), WRITE_MESSAGES)
def test_write_messages(index: Any, shape: tuple[int, ...], phrase: str) -> None:
    with pytest.raises(RuntimeError) as ours:
        write(np.zeros((2, 3, 4)), index, np.zeros(shape))
    with pytest.raises(RuntimeError) as theirs:
        torch.zeros(2, 3, 4)[index] = torch.zeros(shape)
    assert phrase in str(ours.value)
    assert phrase in str(theirs.value)


# Accumulating writes

ACCUMULATED = [
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64", "complex128",
]  # fmt: skip


def accumulated(
    dtype: str, shape: tuple[int, ...], advanced: list[torch.Tensor | None], *, permuted: bool = False
) -> None:
    """Compare one accumulating write with PyTorch's. Small whole numbers make every order of summation exact."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 2, shape, generator=generator).to(getattr(torch, dtype))
    if permuted:
        target = target.permute(*reversed(range(target.ndim))).contiguous().permute(*reversed(range(target.ndim)))
    entries = tuple(None if entry is None else entry.numpy() for entry in advanced)
    selection = indexed_shape(shape, entries)
    values = torch.randint(0, 2, selection, generator=generator).to(target.dtype)
    actual = as_numpy(target)
    expected = torch.ops.aten.index_put_(target.clone(), advanced, values, True)
    advanced_put(actual, entries, as_numpy(values), accumulate=True)
    assert np.array_equal(actual, as_numpy(expected))


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A copy with the same memory order."""
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return np.array(tensor.float().numpy().astype(ml_dtypes.bfloat16), order="K")
    return np.array(tensor.numpy(), order="K")


@pytest.mark.parametrize("dtype", ACCUMULATED)
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("width", [1, 5, 130])
@pytest.mark.parametrize("count", [1, 3, 150])
def test_accumulate_into_rows(dtype: str, permuted: bool, width: int, count: int) -> None:
    rows = torch.randint(-11, 11, (count,), generator=torch.Generator().manual_seed(count))
    accumulated(dtype, (11, width), [rows, None], permuted=permuted)
    accumulated(dtype, (width, 11), [None, rows], permuted=permuted)
    accumulated(dtype, (11,), [rows], permuted=permuted)
    accumulated(dtype, (11, width, 11), [rows, None, rows.flip(0)], permuted=permuted)
    accumulated(dtype, (2, 11, 11, width), [None, rows[:, None], rows[:3], None], permuted=permuted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("width", [1, 200])
def test_16_bit_floats_are_summed_in_float32(dtype: str, width: int) -> None:
    target = as_numpy(torch.zeros((3, width), dtype=getattr(torch, dtype)))
    advanced_put(target, (np.zeros(1024, np.int64), None), np.ones((1024, width), target.dtype), accumulate=True)
    assert target[0].astype(float).tolist() == [1024.0] * width


@pytest.mark.parametrize("shape", [(5, 3, 4), (3,), (2, 1, 5)])
def test_accumulate_checks_shapes_and_positions(shape: tuple[int, ...]) -> None:
    target = np.zeros((2, 3, 4))
    with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result of shape"):
        advanced_put(target, (np.array([0, 1]), None, None), np.ones(shape), accumulate=True)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        advanced_put(target, (np.array([0, 2]), None, None), np.ones((2, 3, 4)), accumulate=True)
    assert not target.any()


def test_accumulate_broadcasts_values() -> None:
    rows = torch.tensor([0, 1, 1, 0, 1])
    for shape in [(), (1,), (4,), (5, 1), (1, 4), (5, 4)]:
        values = torch.arange(float(int(np.prod(shape)))).reshape(shape) + 1
        actual = np.zeros((2, 4), np.float32)
        advanced_put(actual, (rows.numpy(), None), values.numpy(), accumulate=True)
        expected = torch.zeros(2, 4).index_put_((rows,), values, accumulate=True)
        assert actual.tolist() == expected.tolist()


# The fast path

BASIC: list[Any] = [
    0, -1, slice(1, 3), slice(None, None, 2), None, ..., (), (0, 1), (..., 0), (0, ...), (None, 0), (slice(1), 1),
]  # fmt: skip


@pytest.mark.parametrize("index", BASIC)
@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 4), ()])
def test_basic_index_agrees_with_the_plan(index: Any, shape: tuple[int, ...]) -> None:
    array = numbered(*shape).numpy()
    key = basic_index(index, array.ndim)
    assert key is not None

    def fast() -> np.ndarray:
        view = array[key]
        assert isinstance(view, np.ndarray)
        return view

    expected, actual = outcome(lambda: read(array, index)), outcome(fast)
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert actual.shape == expected.shape
        assert actual.tolist() == expected.tolist()
        assert np.shares_memory(actual, array)


@pytest.mark.parametrize(
    "index",
    [True, [0], (0, [1]), (0, True), slice(None, None, -1), slice(None, None, 0), (slice(None, None, -1),), (..., ...),
     np.int64(0), 1.0, "a", Two(), np.array([0]), (0, Two())],
)  # fmt: skip
def test_basic_index_leaves_the_rest_to_the_plan(index: Any) -> None:
    assert basic_index(index, 2) is None


# Properties

sizes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
positions = st.integers(-5, 5)
optional = st.none() | positions
index_tensors = st.lists(st.integers(-2, 2), max_size=4).map(lambda items: torch.tensor(items, dtype=torch.int64))
masks = st.lists(st.booleans(), max_size=4).map(lambda items: torch.tensor(items, dtype=torch.bool))
items = st.one_of(
    positions, st.none(), st.just(...), st.booleans(), index_tensors, masks,
    st.builds(slice, optional, optional, st.none() | st.integers(-1, 3)),
    st.lists(positions, max_size=3),
)  # fmt: skip


@settings(max_examples=600, deadline=None, derandomize=True)
@given(sizes, st.lists(items, max_size=5).map(tuple), st.randoms(use_true_random=False))
def test_any_index_on_any_layout(shape: tuple[int, ...], index: tuple[Any, ...], generator: random.Random) -> None:
    order = generator.sample(range(len(shape)), len(shape))
    stored = numbered(*(shape[dim] for dim in order))
    source = stored.permute(*np.argsort(order).tolist()) if order else stored
    assert tuple(source.shape) == shape
    line = disagreement(source, index)
    assert line is None, line
