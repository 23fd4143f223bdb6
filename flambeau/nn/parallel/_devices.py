"""The devices between which work can be shared, and the numbers that stand for them."""

from __future__ import annotations

from typing import Any

from ..._core import device as devices
from ..._core.device import CPU, device, usable_device

DeviceLike = device | str | int


def available_type() -> str | None:
    """The type of device that there are several of: CUDA's, or the CPU's where it plays several; None for neither."""
    from ... import cuda

    if cuda.is_available():
        return "cuda"
    return "cpu" if devices.CPU_DEVICES > 1 else None


def all_indices() -> list[int]:
    """The numbers of all devices of the available type."""
    from ... import cuda

    count = cuda.device_count() if available_type() == "cuda" else devices.CPU_DEVICES
    return list(range(count))


def as_device(value: DeviceLike | None) -> device:
    """The device that is meant: by its number among those of the available type, -1 being the CPU, or by name.

    None is the first of them.
    """
    if value is None:
        value = 0
    if isinstance(value, int) and not isinstance(value, bool):
        return CPU if value == -1 else usable_device(device(available_type() or "cuda", value))
    return usable_device(value)


def index_of(value: Any) -> int:
    """The number of a device of the available type."""
    place = as_device(value)
    if place.type != available_type() and value != -1:
        raise ValueError(f"Expected a {available_type()} device, but got: {value}")
    return value if isinstance(value, int) else place.index or 0
