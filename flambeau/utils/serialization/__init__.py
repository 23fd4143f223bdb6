"""The switches of saving and loading as settings, under the names of `torch.utils.serialization`."""

from __future__ import annotations

from . import config

__all__ = ["config"]
