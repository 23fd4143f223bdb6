"""Which device is meant by an ordinal, a name, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._backends.cuda.runtime.devices import on_device, several
from .._backends.cuda.runtime.driver import Driver, driver
from .._core.device import device as Device
from .._core.device import usable_device


def place_of(found: Any) -> Device:
    """A CUDA device by its ordinal, name or object, the one in use for None; PyTorch's error where there is none."""
    return usable_device(f"cuda:{found}" if isinstance(found, int) else "cuda" if found is None else found)


def index_of(found: Any) -> int:
    """The ordinal of a CUDA device, the one in use for None."""
    return place_of(found).index or 0


def driver_of(found: Any) -> Driver:
    """The driver of a device, the one in use for None."""
    index, drivers = index_of(found), several()
    return driver() if drivers is None else drivers.all[index]


def on(found: Any) -> on_device:
    """A context in which a device is in use."""
    return on_device(index_of(found))


def on_each_device() -> Iterator[Driver]:
    """The driver of each device in turn, which is in use meanwhile."""
    usable_device("cuda")
    drivers = several()
    for each in (driver(),) if drivers is None else drivers.all:
        with on_device(each.ordinal):
            yield each
