"""DLPack, by which array libraries share memory."""

from __future__ import annotations

from flambeau._ops.tensor.interchange import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
