"""A library of convolutions that Flambeau does not call."""

from __future__ import annotations

from ._flags import setters

enabled = False
set_flags, flags = setters(globals(), enabled=False)


def is_available() -> bool:
    """Whether kernels use it."""
    return False
