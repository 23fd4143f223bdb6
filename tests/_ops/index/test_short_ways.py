"""Indices and numbers that take fewer steps: the values and layouts of PyTorch's, in few Python frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau
from flambeau._dispatch.call.primitive import CALLS

DTYPES = ["int64", "int32", "int16", "int8", "uint8", "bool", "float32", "float16", "bfloat16", "complex64"]
NUMBERS = [0, 1, -1, True, False, 127, 128, -100, 300, 2**31, -(2**31), 2**40, 1.5]


def _outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (RuntimeError, TypeError, OverflowError):
        return "refused"


def _frames_of(action: Callable[[], Any]) -> int:
    """How many Python functions a call takes after the first few."""
    for _ in range(12):
        action()
    count = 0

    def watch(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count - 1  # the action itself


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_written_as_in_pytorch(name: str, number: Any) -> None:
    for key in ((..., 0), 0, (slice(None), 1), (0, 1)):

        def written(framework: Any, key: Any = key) -> Any:
            tensor = framework.ones(3, 4, dtype=getattr(framework, name))
            tensor[key] = number
            return str(tensor.tolist())

        assert _outcome(lambda: written(flambeau)) == _outcome(lambda: written(torch))


@pytest.mark.parametrize("name", DTYPES[:5])
@pytest.mark.parametrize("number", [-1, -100, 5, 300, 2**31, -(2**31) - 1, 2**40])
@pytest.mark.parametrize("op", ["eq", "ne", "lt", "add", "mul", "floor_divide", "remainder", "sub_", "mul_"])
def test_integers_meet_numbers_as_in_pytorch(name: str, number: int, op: str) -> None:
    def found(framework: Any) -> Any:
        result = getattr(framework.arange(6).reshape(2, 3).to(getattr(framework, name)), op)(number)
        return str(result.tolist()), str(result.dtype).rpartition(".")[2]

    assert _outcome(lambda: found(flambeau)) == _outcome(lambda: found(torch))


@pytest.mark.parametrize("index", ["_a", "a_", "ab", "ab_", "_ab", "_a_b", "__a"])
@pytest.mark.parametrize("turned", [False, True])
def test_positions_beside_new_dimensions(index: str, turned: bool) -> None:
    found = []
    for framework in (flambeau, torch):
        tensor = framework.arange(60.0).reshape(5, 4, 3)
        tensor = (tensor.permute(2, 1, 0) if turned else tensor).requires_grad_()
        positions = {"a": framework.tensor([[2, -1], [0, 1]]), "b": framework.tensor([1, 2]), "_": None}
        result = tensor[tuple([positions[each] for each in index])]
        result.square().sum().backward()
        strides = [step for step, size in zip(result.stride(), result.shape, strict=True) if size > 1]
        found.append((tuple(result.shape), turned or strides, result.tolist(), tensor.grad.tolist()))
    assert found[0] == found[1]


def test_positions_out_of_range_are_refused() -> None:
    tensor = flambeau.zeros(3, 2, requires_grad=True)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        tensor[None, flambeau.tensor([3])]
    with pytest.raises(IndexError, match="too many indices"):
        tensor[None, flambeau.tensor([0]), flambeau.tensor([0]), flambeau.tensor([0])]


def test_they_take_few_frames() -> None:
    ids = flambeau.arange(12).reshape(3, 4)
    mask = ids == 3

    def write() -> None:
        ids[..., 0] = 0

    def allow() -> None:
        mask[0] = True

    assert _frames_of(lambda: ids != -100) <= 3
    assert _frames_of(write) <= 14
    assert _frames_of(allow) <= 12


@pytest.mark.parametrize("index", [[-1, 0], (-1, 0), [1, 1, 1], [5], [-6], [], [True, False], [0.0], [2**62]])
@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (3,), (2, 0)])
def test_lists_of_positions_behind_a_whole_dimension(index: Any, shape: tuple[int, ...]) -> None:
    def found(framework: Any) -> Any:
        x = framework.arange(float(max(1, torch.Size(shape).numel())))[: torch.Size(shape).numel()].reshape(shape)
        try:
            picked = x[:, index]
        except Exception as error:
            return type(error).__name__
        return picked.tolist(), tuple(picked.shape), picked.stride()

    assert found(flambeau) == found(torch)


@pytest.mark.parametrize("positions", [[1], [-1, 0], [0, 0], [[0, 1], [1, 0]], [7], []])
def test_positions_of_arrays_with_gaps(positions: Any) -> None:
    def found(framework: Any) -> Any:
        x = framework.arange(24).reshape(4, 3, 2).permute(2, 1, 0)
        try:
            picked = x[framework.tensor(positions, dtype=framework.int64)]
        except IndexError:
            return "refused"
        return picked.tolist(), picked.stride()

    assert found(flambeau) == found(torch)


@pytest.mark.parametrize("positions", [[-2], [-1, 0, -1], [1, 1], [0, -3]])
def test_gradients_of_positions_counted_from_the_end(positions: list[int]) -> None:
    def found(framework: Any) -> Any:
        x = framework.arange(24.0).reshape(2, 3, 4).requires_grad_()
        x[..., positions, :].square().sum().backward()
        return x.grad.tolist()

    assert found(flambeau) == found(torch)


@pytest.mark.parametrize("places", [([0, 1, 1], [1, 1, 1]), ([-1, 0], [0, -1]), ([2, 2, 2], [0, 0, 0])])
def test_gradients_of_single_places(places: tuple[list[int], list[int]]) -> None:
    def found(framework: Any) -> Any:
        rows, columns = map(framework.tensor, places)
        x = framework.arange(6.0).reshape(3, 2).requires_grad_()
        picked = x[rows, columns, None]
        (picked * framework.arange(1.0, 1 + len(places[0])).unsqueeze(1)).sum().backward()
        return picked.tolist(), x.grad.tolist()

    assert found(flambeau) == found(torch)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", ["bool", "int64"])
def test_where_of_a_mask_gives_positions_in_one_memory(name: str, turned: bool) -> None:
    def found(framework: Any) -> Any:
        mask = framework.tensor([[1, 0, 2], [0, 3, 0]]).to(getattr(framework, name))
        columns = framework.where(mask.t() if turned else mask)
        described = [(each.tolist(), each.stride(), each.storage_offset()) for each in columns]
        columns[0].add_(1)
        return described, [each._version for each in columns], columns[1].tolist()

    assert found(flambeau) == found(torch)


def test_windows_that_are_recorded_take_few_functions() -> None:
    x = flambeau.ones(4, 4, 4, requires_grad=True)
    for _ in range(CALLS):  # then the ops have functions of their own
        x[..., 1:2, 1]
    assert _frames_of(lambda: x[..., :2]) <= 6
    assert _frames_of(lambda: x[:, 1]) <= 6
