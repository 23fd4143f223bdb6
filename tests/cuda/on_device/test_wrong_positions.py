"""Positions that are not there, in data on the device: an error by the next wait, and no foreign memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from tests.tensor.wrong_positions import CALLS, NUMBERS, run

_ON_HOST = ("sparse", "pack", "pad_packed", "lu", "linalg", "tensor_split")
"""Calls whose arguments are the host's, in part."""
_PASSED_OVER = ("embedding gradient", "max_pool2d gradient")
"""Gradients: their kernels pass over what the forward op has found to be wrong."""


@pytest.mark.parametrize("size", [16, 300], ids=["few", "many"])
@pytest.mark.parametrize("name", [each for each in CALLS if not each.startswith(_ON_HOST)])
def test_wrong_positions(name: str, size: int) -> None:
    for number in NUMBERS:
        expected, found = _raises(name, "cpu", size, number), _raises(name, "cuda", size, number)
        assert found or not expected or name in _PASSED_OVER, number


def _raises(name: str, device: str, size: int, number: int) -> bool:
    """Whether a call fails, or a wait after it: several kernels may have found what is wrong, each wait tells one."""
    calls = (lambda: run(name, torch, device, size, number), *[torch.cuda.synchronize] * 9)
    return True in [_fails(each) for each in calls]


def _fails(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (IndexError, RuntimeError, ValueError, AttributeError):
        return True
    return False
