"""CUDA devices. This installation has none: questions are answered, everything else says so."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from .._core.device import usable_device


def is_available() -> bool:
    """Whether a CUDA device can be used."""
    return False


def device_count() -> int:
    """The number of CUDA devices."""
    return 0


def is_initialized() -> bool:
    """Whether a CUDA device is in use."""
    return False


def current_device() -> NoReturn:
    """The ordinal of the device in use; here an error, since there is none."""
    usable_device("cuda")
    raise AssertionError("unreachable: usable_device refuses cuda")


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device there is nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; without a device there is nothing to seed."""


def synchronize(device: object = None) -> None:
    """Wait for the device; without one there is nothing to wait for."""


def empty_cache() -> None:
    """Return unused device memory; without a device there is none."""


def memory_allocated(device: object = None) -> int:
    """Bytes held by tensors on the device."""
    return 0


def memory_reserved(device: object = None) -> int:
    """Bytes that the device's pool keeps."""
    return 0


memory_cached = memory_reserved
max_memory_allocated = memory_allocated
max_memory_reserved = memory_reserved


def __getattr__(name: str) -> Any:
    if name == "amp":  # later: it is made of `flambeau.amp`, which asks here whether CUDA is available
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
