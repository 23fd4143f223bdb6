"""`torch._dynamo.backends`: compilers to choose from, none yet."""

from __future__ import annotations

from ..compiler import list_backends

__all__ = ["list_backends"]
