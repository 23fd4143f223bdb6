"""The context in which factories put tensors on a device, under the names of `torch.utils._device`."""

from __future__ import annotations

from typing import Any

from .._core.device import device as device_class
from .._core.process.defaults import pop_default_device, push_default_device
from ._contextlib import context_decorator


class DeviceContext:
    """A context in which factories put tensors on a device unless they are told."""

    def __init__(self, device: Any) -> None:
        self.device = device_class(device)

    def __enter__(self) -> DeviceContext:
        push_default_device(self.device)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_default_device()


def device_decorator(device: Any, func: Any) -> Any:
    """A function whose factories put tensors on a device."""
    return context_decorator(lambda: device, func)


def set_device(device: Any) -> Any:
    """A decorator that runs a function with a default device."""
    return lambda func: device_decorator(device_class(device), func)
