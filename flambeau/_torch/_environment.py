"""`torch._environment`: whether PyTorch was built for its authors' own use."""

from __future__ import annotations


def is_fbcode() -> bool:
    """Whether this is a build for its authors' own use."""
    return False


def is_prod() -> bool:
    """Whether this runs in its authors' own data centres."""
    return False
