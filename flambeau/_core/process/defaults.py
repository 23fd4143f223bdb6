"""Process-wide and thread-local defaults of the factory functions: the device."""

from __future__ import annotations

import threading
from typing import Any

from ..device import CPU, device, usable_device


class _DeviceStack(threading.local):
    def __init__(self) -> None:
        self.stack: list[device] = []


_THREAD = _DeviceStack()
_process_default = CPU
_ever_chosen = False  # nearly no program chooses a device: the look-up of the thread's stack is spared until one does


def default_device() -> device:
    """Where factory functions put a tensor when the caller names no device."""
    if not _ever_chosen:
        return CPU
    stack = _THREAD.stack
    return stack[-1] if stack else _process_default


def device_for(value: Any) -> device:
    """The device that a `device=` argument names, where tensors can be made; None names the default one."""
    if value is None:
        return default_device()
    if isinstance(value, int):
        if isinstance(value, bool):
            raise TypeError("argument 'device' must be torch.device, not bool")
        device(value)
        raise RuntimeError(
            f"Cannot access accelerator device when none is available: device={value} means the accelerator number "
            f"{value}. Use device='cpu'."
        )
    return usable_device(value)


def push_default_device(value: device) -> None:
    """Begin a `with device:` block."""
    global _ever_chosen
    _THREAD.stack.append(usable_device(value))
    _ever_chosen = True


def pop_default_device() -> None:
    """End a `with device:` block."""
    _THREAD.stack.pop()


def set_default_device(device: device | str | int | None) -> None:
    """Choose where factory functions put tensors; None means the CPU again."""
    global _process_default, _ever_chosen
    _process_default = CPU if device is None else usable_device(device)
    _ever_chosen = True


def get_default_device() -> device:
    """The device of tensors whose maker names none."""
    return default_device()
