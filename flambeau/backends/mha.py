"""Whether `nn.MultiheadAttention` and encoder layers may take a shorter way in inference."""

from __future__ import annotations

_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether the shorter way may be taken; layers here have one way alone, with the same results."""
    return _fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Say whether it may be taken."""
    global _fastpath_enabled
    _fastpath_enabled = value
