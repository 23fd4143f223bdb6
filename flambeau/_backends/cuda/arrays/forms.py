"""Memory for the forms of arrays on a device: as large as a device's, full of zeros, and never written.

The system maps it without finding memory for it, and a form that does not fit is refused. So nobody reads memory of
somebody else through a form, whatever its shape.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

_SIZES = (1 << 46, 1 << 42, 1 << 38, 1 << 34)
"""How many bytes to ask for, the most first: processors differ in the addresses that they have."""


def reserved() -> Any:
    """The memory, as an array of bytes."""
    if hasattr(mmap, "MAP_ANONYMOUS"):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        for size in _SIZES:
            with suppress(OSError, ValueError, OverflowError):
                return np.frombuffer(mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ), np.uint8)
    raise OSError("the system reserves no addresses for arrays on a device: see `ulimit -v`")
