"""Threads by OpenMP: the kernels are NumPy's, which brings its own threads."""

from __future__ import annotations


def is_available() -> bool:
    """Whether kernels use it."""
    return False
