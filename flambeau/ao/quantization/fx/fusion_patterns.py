"""The older name of `fuse_handler`."""

from __future__ import annotations

from .fuse_handler import (
    DefaultFuseHandler,
    FuseHandler,
)

__all__ = [
    "DefaultFuseHandler",
    "FuseHandler",
]
