"""Process-wide and thread-local defaults of the factory functions: the device."""

from __future__ import annotations

import threading
from typing import Any

from ..device import CPU, device, fake_device, shown_device, usable_device


class _DeviceStack(threading.local):
    def __init__(self) -> None:
        self.stack: list[device] = []
        self.fakes = 0  # how many modes are entered in which all tensors that are made are fake


_THREAD = _DeviceStack()
_process_default = CPU
_ever_chosen = False  # nearly no program chooses a device: the look-up of the thread's stack is spared until one does


def make_fakes(change: int) -> None:
    """Enter (1) or leave (-1) a mode of this thread in which every tensor that is made is a fake one."""
    global _ever_chosen
    _THREAD.fakes += change
    _ever_chosen = True


def default_device() -> device:
    """Where factory functions put a tensor when the caller names no device."""
    if not _ever_chosen:
        return CPU
    stack = _THREAD.stack
    found = stack[-1] if stack else _process_default
    return fake_device(found) if _THREAD.fakes else found


def device_for(value: Any) -> device:
    """The device that a `device=` argument names, where tensors can be made; None names the default one."""
    if value is None:
        return default_device()
    if _ever_chosen and _THREAD.fakes:
        return fake_place(value)
    if isinstance(value, int):
        if isinstance(value, bool):
            raise TypeError("argument 'device' must be torch.device, not bool")
        named = device(value)
        try:
            return usable_device(named)
        except AssertionError as error:
            raise RuntimeError(
                f"Cannot access accelerator device when none is available: device={value} means the accelerator number "
                f"{value}. {error}"
            ) from None
    return usable_device(value)


def fake_place(value: Any) -> device:
    """The fake form of the device that `value` names, whether this machine has one or not: nothing is put there."""
    named = device(value)
    if named.dataless:
        return named
    return fake_device(CPU if named.type == "cpu" else device(named.type, named.index or 0))


def push_default_device(value: device) -> None:
    """Begin a `with device:` block."""
    global _ever_chosen
    _THREAD.stack.append(device_for(value))
    _ever_chosen = True


def pop_default_device() -> None:
    """End a `with device:` block."""
    _THREAD.stack.pop()


def set_default_device(device: device | str | int | None) -> None:
    """Choose where factory functions put tensors; None means the CPU again.

    Args:
        device (device or str or int, optional): the device.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.ones(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
    """
    global _process_default, _ever_chosen
    _process_default = CPU if device is None else usable_device(device)
    _ever_chosen = True


def get_default_device() -> device:
    """The device of tensors whose maker names none.

    Returns:
        device: the device.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    return shown_device(default_device())
