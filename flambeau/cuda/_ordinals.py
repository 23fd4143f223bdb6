"""Which device is meant by an ordinal, a name, or nothing."""

from __future__ import annotations

from typing import Any

from .._core.device import device as Device
from .._core.device import usable_device


def place_of(found: Any) -> Device:
    """A CUDA device by its ordinal, name or object, the one in use for None; PyTorch's error where there is none."""
    return usable_device(f"cuda:{found}" if isinstance(found, int) else "cuda" if found is None else found)
