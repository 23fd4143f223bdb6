"""Whether mixed precision on CUDA is possible at all."""

from __future__ import annotations

from .. import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device on which it could run."""
    return not is_available()
