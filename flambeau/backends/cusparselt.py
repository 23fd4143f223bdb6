"""A library for sparse matrices on CUDA devices, of which there are none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether kernels use it."""
    return False


def version() -> int | None:
    """The library's version."""
    return None


def get_max_alg_id() -> int | None:
    """The number of its algorithms."""
    return None
