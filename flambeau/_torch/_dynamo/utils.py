"""`torch._dynamo.utils`: what programs ask there."""

from __future__ import annotations

from collections import Counter, defaultdict

from flambeau.compiler._marks import is_compiling

__all__ = ["counters", "is_compile_supported", "is_compiling"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""What the compiler did: nothing so far."""


def is_compile_supported(device_type: str) -> bool:
    """Whether code for a device can be compiled: not yet."""
    return False
