"""Apple's GPUs, for which there are no kernels."""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensors may be put on such a device."""
    return False


def is_built() -> bool:
    """Whether this build has kernels for it."""
    return False
