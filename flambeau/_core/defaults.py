"""Process-wide and thread-local defaults of the factory functions: the device."""

from __future__ import annotations

import threading

from .device import CPU, device, usable_device


class _DeviceStack(threading.local):
    def __init__(self) -> None:
        self.stack: list[device] = []


_THREAD = _DeviceStack()
_process_default: list[device] = [CPU]


def default_device() -> device:
    """Where factory functions put a tensor when the caller names no device."""
    stack = _THREAD.stack
    return stack[-1] if stack else _process_default[0]


def push_default_device(value: device) -> None:
    _THREAD.stack.append(usable_device(value))


def pop_default_device() -> None:
    _THREAD.stack.pop()


def set_default_device(device: device | str | int | None) -> None:
    """Choose where factory functions put tensors; None means the CPU again."""
    _process_default[0] = CPU if device is None else usable_device(device)


def get_default_device() -> device:
    """The device of tensors whose maker names none."""
    return default_device()
