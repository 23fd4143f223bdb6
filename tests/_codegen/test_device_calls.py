"""Calls that give work to a device, on functions that write down what they are told."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau._codegen.machine.device_calls import BETA, device_launch, device_product

_NUMBER, _WORD = ctypes.c_uint, ctypes.c_uint64
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _WORD, *[_NUMBER] * 7, *[_WORD] * 3)
_PRODUCT = ctypes.CFUNCTYPE(ctypes.c_int, *[_WORD] * 16)


class _Refusal(RuntimeError):
    """What a call raises."""


def _table(function: Any, *more: int) -> Any:
    address: Any = ctypes.cast(function, ctypes.c_void_p).value
    return np.array((address, id(_Refusal), *more), np.int64)


def _launched(status: int) -> tuple[Callable[..., None], list[tuple[Any, ...]]]:
    seen: list[tuple[Any, ...]] = []

    def start(*given: int) -> int:
        *numbers, parameters, more = given
        content = ctypes.string_at(_WORD.from_address(parameters).value, 5)
        seen.append((*numbers, content, more))
        return status

    function = _LAUNCH(start)

    def launch(*given: Any) -> None:
        device_launch()(_table(function, 1 << 40), *given)

    return launch, seen


def test_a_kernel_is_told_its_fields() -> None:
    launch, seen = _launched(0)
    launch(7, 256, b"field", 1 << 33)
    assert seen == [(1 << 40, 7, 1, 1, 256, 1, 1, 0, 1 << 33, b"field", 0)]


def test_a_launch_that_fails_raises_its_number() -> None:
    launch, _ = _launched(201)
    with pytest.raises(_Refusal) as caught:
        launch(1, 1, b"field", 0)
    assert caught.value.args == (201,)


def test_a_product_is_told_what_stands_in_its_table() -> None:
    seen: list[int] = []

    def multiply(*given: int) -> int:
        seen.extend(given)
        return 0

    function = _PRODUCT(multiply)
    handle, operation, factors, left, right, result, way, room = range(100, 108)
    table = _table(function, handle, operation, factors, left, right, result, way, room)
    device_product()(table, 1, 2, 3, 4, 5)
    operands = [3, right, 2, left, factors + BETA, 1, result, 1, result]
    assert seen == [handle, operation, factors, *operands, way, 4, room, 5]
