"""ARM's kernels for quantized products, which Flambeau does not call."""

from __future__ import annotations


def is_available() -> bool:
    """Whether kernels use it."""
    return False
