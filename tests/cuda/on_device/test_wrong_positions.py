"""Positions that are not there, in data on the device: an error when the host waits at the latest, no foreign memory."""

from __future__ import annotations

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
    found = False
    for call in (lambda: run(name, torch, device, size, number), *[torch.cuda.synchronize] * 9):
        try:
            call()
        except (IndexError, RuntimeError, ValueError, AttributeError):
            found = True  # several kernels may have found it, of which each wait tells one
    return found
