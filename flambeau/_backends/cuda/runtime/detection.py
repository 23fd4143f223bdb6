"""Whether there is a CUDA device: known without the backend, which reserves addresses for the arrays on one."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

from ...._core.backend import is_installed
from ...._core.device import device
from ...._core.names.error_classes import AcceleratorError
from .synchronization import HERE

INSTALL = 'pip install "flambeau[cuda]"'


@cache
def missing() -> str | None:
    """Why there is no CUDA device to use, in words for users; None: there is one."""
    if importlib.util.find_spec("cupy") is None:
        return f"the package cupy is not installed; {INSTALL}"
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # no driver, no library, a version that does not fit: whatever it says
        return f"cupy finds no GPU: {type(error).__name__}: {str(error).strip().splitlines()[-1]}"
    return None if count else "cupy finds no GPU"


_forked_with_device = False
"""Whether this process was forked from one that uses a device: what it has of the driver does not work."""


def in_bad_fork() -> bool:
    """Whether no device can be used here, since the process was forked from one that uses one."""
    return _forked_with_device


def _note_fork() -> None:
    global _forked_with_device
    _forked_with_device = is_installed("cuda")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_present() -> bool:
    """Whether there is a CUDA device. Nothing of it is started by the question."""
    return is_installed("cuda") or missing() is None


def usable(found: device) -> device:
    """A CUDA device with its ordinal, or PyTorch's error where there is none."""
    if not is_installed("cuda"):
        reason = missing()
        if reason is not None:
            raise AssertionError(
                f"Torch not compiled with CUDA enabled: Flambeau has no CUDA device here, since {reason}. Or use "
                "device='cpu'; the same program needs no other change."
            )
        from ..backend import start

        start()
    if _forked_with_device:
        raise RuntimeError(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method: torch.multiprocessing.get_context('spawn'), or multiprocessing_context='spawn'."
        )
    index = HERE.ordinal if found.index is None else found.index
    if index and index >= count():
        raise AcceleratorError(f"CUDA error: invalid device ordinal: {found}; the last one here is cuda:{count() - 1}")
    return device("cuda", index)


def count() -> int:
    """How many devices there are."""
    if is_installed("cuda"):
        from .devices import several

        found = several()
        return 1 if found is None else len(found.all)
    if missing() is not None:
        return 0
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())
