"""DLPack, by which array libraries share memory."""

from __future__ import annotations

from flambeau._dispatch.public.registry import public_function
from flambeau._ops.tensor.interchange import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

from_dlpack, to_dlpack = (public_function("", name) for name in ("from_dlpack", "to_dlpack"))
