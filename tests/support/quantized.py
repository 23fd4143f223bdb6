"""What tests of quantized tensors need."""

from __future__ import annotations

import warnings

import pytest

import flambeau
from tests.support.oracle import pytorch


@pytest.fixture(autouse=True)
def warned_before() -> None:
    """Both libraries announce the end of quantized tensors once in a process: here that is before every test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for torch in (flambeau, pytorch):
            if torch is not None:
                torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8)
