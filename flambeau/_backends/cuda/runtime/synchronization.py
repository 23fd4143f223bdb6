"""Where the host waits for the device: counted, and if somebody wants it, warned of or refused."""

from __future__ import annotations

import threading
from typing import Any

from ...._core.process.caller import calling_place, describe_place, warn_user

DEFAULT, WARN, ERROR = range(3)


class _Here(threading.local):
    ordinal = 0
    """The device that this thread works on, among those of the machine: see `devices.py`."""
    recording: Any = None
    """The graph whose work this thread writes down (`recording.py`): waiting for it is impossible."""
    goes_on = False
    """Whether copies between host and device need not be done when a call returns."""


HERE = _Here()


class Synchronizations:
    """How often the host has waited, and what is to happen when it does: `torch.cuda.set_sync_debug_mode`."""

    def __init__(self) -> None:
        self.mode = DEFAULT
        self.count = 0

    def note(self, what: str) -> None:
        """`what` is about to wait for the device."""
        if HERE.recording is not None:
            raise RuntimeError(
                f"CUDA error: operation not permitted when stream is capturing: {what} waits for the device, at "
                f"{describe_place(calling_place())}. A captured graph is work for the GPU alone: do this before or "
                "after it, or compute with tensors in place of numbers."
            )
        self.count += 1
        if self.mode == WARN:
            warn_user(f"called a synchronizing CUDA operation: {what} waits for the device")
        elif self.mode == ERROR:
            raise RuntimeError(f"called a synchronizing CUDA operation: {what} waits for the device")


SYNCHRONIZATIONS = Synchronizations()
