"""The modes of the running thread: is the graph recorded, is this inference, does anyone listen?

Every op reads `THREAD.modes` once: a thread-local look-up is the dearest thing on the short path, so the rest are plain
slots of one object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class Modes:
    """What ops of one thread have to heed.

    `plain` is True while nothing but the grad mode matters: no inference mode, no listener, no forward-mode level, no
    anomaly detection. The short paths test it and leave everything else to the long one.
    """

    __slots__ = (
        "anomaly",
        "anomaly_check_nan",
        "forward_level",
        "grad",
        "inference",
        "listener",
        "overrides_disabled",
        "partial_backward",
        "plain",
        "saved_hooks",
        "saved_hooks_disabled",
    )

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.listener: Callable[[Any, tuple[Any, ...], Any], None] | None = None
        self.anomaly = False
        self.anomaly_check_nan = True
        self.forward_level = -1
        self.overrides_disabled = False
        self.partial_backward = False  # inside a backward pass that was given `inputs`
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.saved_hooks_disabled: str | None = None
        self.plain = True

    def refresh(self) -> None:
        """Derive `plain`; call it after changing any of the modes that it stands for."""
        self.plain = not (self.inference or self.listener or self.anomaly or self.forward_level >= 0)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes = Modes()
        # Tensors follow PyTorch: 1 / 0 is inf, without a word. NumPy's own setting is per thread, like these modes.
        np.seterr(all="ignore")


THREAD = _Thread()
